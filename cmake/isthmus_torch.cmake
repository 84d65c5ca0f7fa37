# PyTorch's libraries for the real backend, from the wheels that scripts/setup.sh --backend installs
# into .torch: `torch_cpu` with libtorch_cpu and c10 alone (a rank that doesn't ask for a GPU never
# loads CUDA), found by hand because the wheel's own package probes for GPUs.
#
# The wheel brings copies of fmt's and protobuf's headers, so its folders come last (-idirafter).
# Gloo's process group is compiled in, but the headers it names are Debian's libgloo-dev.

file(GLOB isthmus_torch_roots "${PROJECT_SOURCE_DIR}/.torch/lib/python3*/site-packages")
set(ISTHMUS_TORCH_ROOT "${isthmus_torch_roots}" CACHE PATH
    "site-packages that hold the torch wheel; empty: no real backend")
if(NOT ISTHMUS_TORCH_ROOT AND isthmus_torch_roots)
  set_property(CACHE ISTHMUS_TORCH_ROOT PROPERTY VALUE "${isthmus_torch_roots}")
endif()

set(ISTHMUS_HAS_TORCH OFF)
if(ISTHMUS_BACKEND AND EXISTS "${ISTHMUS_TORCH_ROOT}/torch/lib/libtorch_cpu.so")
  find_path(GLOO_INCLUDE_DIR gloo/algorithm.h)
  mark_as_advanced(GLOO_INCLUDE_DIR)
  if(GLOO_INCLUDE_DIR)
    set(ISTHMUS_HAS_TORCH ON)
  else()
    message(WARNING "libgloo-dev is not installed: building without the real backend")
  endif()
elseif(ISTHMUS_BACKEND)
  message(STATUS "No torch in .torch (scripts/setup.sh --backend): building without the real backend")
endif()

if(ISTHMUS_HAS_TORCH)
  set(torch_root "${ISTHMUS_TORCH_ROOT}/torch")
  add_library(isthmus_torch_cpu INTERFACE)
  target_compile_options(isthmus_torch_cpu INTERFACE
    "SHELL:-idirafter ${torch_root}/include"
    "SHELL:-idirafter ${torch_root}/include/torch/csrc/api/include")
  target_compile_definitions(isthmus_torch_cpu INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)
  target_link_libraries(isthmus_torch_cpu INTERFACE
    "${torch_root}/lib/libtorch_cpu.so" "${torch_root}/lib/libc10.so")
  target_link_options(isthmus_torch_cpu INTERFACE "LINKER:-rpath,${torch_root}/lib"
                      "LINKER:--allow-shlib-undefined")
  # One precompiled header for all sources that include torch: a third of their compile time.
  add_library(isthmus_torch_pch OBJECT cmake/torch_pch.cc)
  # With our warnings: -Wpedantic is among what must be equal for the header to be taken.
  target_link_libraries(isthmus_torch_pch PRIVATE isthmus_torch_cpu isthmus_warnings)
  target_precompile_headers(isthmus_torch_pch PRIVATE
    <ATen/ATen.h> <torch/csrc/autograd/custom_function.h>
    <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
    <torch/csrc/distributed/c10d/HashStore.hpp> <torch/csrc/distributed/c10d/TCPStore.hpp>
    <algorithm> <map> <memory> <string> <vector>)
endif()

# The GPU library needs CUDA's libraries, which `scripts/setup.sh --gpu` brings as wheels too.
set(ISTHMUS_HAS_GPU OFF)
set(cuda_root "${ISTHMUS_TORCH_ROOT}/nvidia/cu13")
if(ISTHMUS_HAS_TORCH AND EXISTS "${cuda_root}/include/cublas_v2.h" AND
   EXISTS "${ISTHMUS_TORCH_ROOT}/nvidia/nccl/include/nccl.h")
  set(ISTHMUS_HAS_GPU ON)
  file(GLOB isthmus_cuda_libraries "${cuda_root}/lib/libcudart.so.*" "${cuda_root}/lib/libcupti.so.*"
       "${ISTHMUS_TORCH_ROOT}/nvidia/nccl/lib/libnccl.so.*")
endif()

# isthmus_gpu_library(<folder>): libisthmus_cuda.so beside the programs that load it. What it uses of
# ours it finds in them (isthmus_loads_gpu_library).
function(isthmus_gpu_library folder)
  isthmus_glob(sources "${folder}" "*.cc" "")
  add_library(isthmus_cuda SHARED ${sources})
  target_link_libraries(isthmus_cuda PRIVATE isthmus_torch_cpu isthmus_warnings fmt::fmt
                        "${ISTHMUS_TORCH_ROOT}/torch/lib/libtorch_cuda.so"
                        "${ISTHMUS_TORCH_ROOT}/torch/lib/libc10_cuda.so" ${isthmus_cuda_libraries})
  target_include_directories(isthmus_cuda PRIVATE "${PROJECT_SOURCE_DIR}")
  target_include_directories(isthmus_cuda SYSTEM PRIVATE
    "${ISTHMUS_TORCH_ROOT}/nvidia/cu13/include" "${ISTHMUS_TORCH_ROOT}/nvidia/nccl/include")
  target_compile_definitions(isthmus_cuda PRIVATE USE_C10D_NCCL)
  set_target_properties(isthmus_cuda PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}" POSITION_INDEPENDENT_CODE ON)
endfunction()

# isthmus_loads_gpu_library(<program>): it may load the GPU library and lends it its symbols.
function(isthmus_loads_gpu_library target)
  set_target_properties(${target} PROPERTIES ENABLE_EXPORTS ON)
  target_link_options(${target} PRIVATE "LINKER:-rpath,${PROJECT_BINARY_DIR}")
  if(TARGET isthmus_cuda)
    add_dependencies(${target} isthmus_cuda)
  endif()
endfunction()

# isthmus_uses_torch(<target>): links it with torch, with the shared precompiled header.
function(isthmus_uses_torch target)
  target_link_libraries(${target} PRIVATE isthmus_torch_cpu)
  target_precompile_headers(${target} REUSE_FROM isthmus_torch_pch)
endfunction()
