# isthmus_library(<name> [FOLDER <folder>] [DEPENDS <our libraries>...]
#                 [LINK <third-party>...] [LINK_PUBLIC <third-party>...] [EXCLUDE <path>...])
#
# Makes library isthmus_<name> (alias isthmus::<name>) from all sources below <folder>, which is
# <name> unless given. EXCLUDE names files or subfolders, from the root, that belong to another
# target. A folder without sources, or that does not exist, gives a library of headers only, so
# DEPENDS may name any folder. LINK stays private to the sources; LINK_PUBLIC is for the rare
# library that a header shows.
function(isthmus_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FOLDER" "DEPENDS;LINK;LINK_PUBLIC;EXCLUDE")
  if(NOT arg_FOLDER)
    set(arg_FOLDER ${name})
  endif()
  set(target isthmus_${name})
  isthmus_glob(sources "${arg_FOLDER}" "*.cc" "${arg_EXCLUDE}")
  isthmus_glob(headers "${arg_FOLDER}" "*.h" "${arg_EXCLUDE}")

  set(depends ${arg_DEPENDS})
  list(TRANSFORM depends PREPEND isthmus_)
  if(sources)
    add_library(${target} STATIC ${sources})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE isthmus_warnings ${arg_LINK})
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(isthmus::${name} ALIAS ${target})
  # internal/ may show third-party headers, so only the others are a promise to other folders.
  list(FILTER headers EXCLUDE REGEX "/internal/")
  if(headers)
    target_sources(${target} ${scope} FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}"
                   FILES ${headers})
  endif()
  target_include_directories(${target} ${scope} "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${target} ${scope} ${depends} ${arg_LINK_PUBLIC})
  # Target all_verify_interface_header_sets compiles each header by itself.
  set_target_properties(${target} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
endfunction()

# isthmus_glob(<variable> <folder> <pattern> "<excluded paths>"): files below the folder, looked for
# again at every build.
function(isthmus_glob variable folder pattern excluded)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/${pattern}")
  foreach(path IN LISTS excluded)
    set(kept)
    foreach(file IN LISTS files)
      string(FIND "${file}" "${PROJECT_SOURCE_DIR}/${path}" position)
      if(NOT position EQUAL 0)
        list(APPEND kept "${file}")
      endif()
    endforeach()
    set(files ${kept})
  endforeach()
  set(${variable} ${files} PARENT_SCOPE)
endfunction()

# isthmus_flow_library(<folder>): libisthmus_flow.so beside the programs, which load it when a run
# asks for the flow network. It takes nothing from them but the interface's header.
function(isthmus_flow_library folder)
  isthmus_glob(sources "${folder}" "*.cc" "")
  add_library(isthmus_flow SHARED ${sources})
  target_link_libraries(isthmus_flow PRIVATE simgrid::simgrid isthmus_warnings)
  target_include_directories(isthmus_flow PRIVATE "${PROJECT_SOURCE_DIR}")
  set_target_properties(isthmus_flow PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
endfunction()

# isthmus_loads_flow_library(<program>): it may load the flow network, wherever it lies itself.
function(isthmus_loads_flow_library target)
  if(TARGET isthmus_flow)
    # As RPATH: a sanitizer's dlopen() doesn't look at the RUNPATH of who calls it.
    target_link_options(${target} PRIVATE "LINKER:-rpath,${PROJECT_BINARY_DIR}"
                        "LINKER:--disable-new-dtags")
    add_dependencies(${target} isthmus_flow)
  endif()
endfunction()

# isthmus_proto_library(<name> <folder>): the schemas <folder>/*.proto as library isthmus_<name>.
# The code lies in <build>/generated, so `#include "traces/proto/trace.pb.h"` finds it; it is not
# held to our warnings.
function(isthmus_proto_library name folder)
  set(target isthmus_${name})
  set(generated "${PROJECT_BINARY_DIR}/generated")
  file(GLOB schemas CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.proto")
  if(NOT schemas)
    add_library(${target} INTERFACE)
    return()
  endif()
  file(MAKE_DIRECTORY "${generated}/${folder}")
  set(sources)
  foreach(schema IN LISTS schemas)
    get_filename_component(stem "${schema}" NAME_WE)
    set(output "${generated}/${folder}/${stem}.pb")
    add_custom_command(
      OUTPUT "${output}.cc" "${output}.h"
      COMMAND protobuf::protoc "-I${PROJECT_SOURCE_DIR}" "--cpp_out=${generated}" "${schema}"
      DEPENDS ${schemas}
      COMMENT "Compiling schema ${folder}/${stem}.proto"
      VERBATIM)
    list(APPEND sources "${output}.cc" "${output}.h")
  endforeach()
  add_library(${target} STATIC ${sources})
  target_include_directories(${target} SYSTEM PUBLIC "${generated}")
  target_link_libraries(${target} PUBLIC protobuf::libprotobuf)
endfunction()

# isthmus_benchmarks(<folder>): every <folder>/*.cc is a Google Benchmark program of that name.
function(isthmus_benchmarks folder)
  find_package(benchmark REQUIRED)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.cc")
  foreach(source IN LISTS sources)
    get_filename_component(stem "${source}" NAME_WE)
    add_executable(bench_${stem} "${source}")
    target_link_libraries(bench_${stem} PRIVATE isthmus_cli isthmus_warnings benchmark::benchmark
                          benchmark::benchmark_main)
    isthmus_loads_flow_library(bench_${stem})
    target_compile_definitions(bench_${stem} PRIVATE
                               ISTHMUS_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  endforeach()
endfunction()
