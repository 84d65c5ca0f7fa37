# Third-party libraries, all from Debian packages (scripts/setup.sh installs them).

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(Protobuf REQUIRED)
find_package(Boost 1.74 REQUIRED)  # Headers only (Boost.Graph).
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# Debian's libzstd-dev brings no CMake package.
find_path(ZSTD_INCLUDE_DIR zstd.h REQUIRED)
find_library(ZSTD_LIBRARY zstd REQUIRED)
mark_as_advanced(ZSTD_INCLUDE_DIR ZSTD_LIBRARY)
add_library(zstd::zstd UNKNOWN IMPORTED)
set_target_properties(zstd::zstd PROPERTIES
  IMPORTED_LOCATION "${ZSTD_LIBRARY}"
  INTERFACE_INCLUDE_DIRECTORIES "${ZSTD_INCLUDE_DIR}")

# SimGrid: only the library of the flow network and the oracle tests may link it; without it both
# are left out.
find_path(SIMGRID_INCLUDE_DIR simgrid/s4u.hpp)
find_library(SIMGRID_LIBRARY simgrid)
mark_as_advanced(SIMGRID_INCLUDE_DIR SIMGRID_LIBRARY)
if(SIMGRID_INCLUDE_DIR AND SIMGRID_LIBRARY)
  add_library(simgrid::simgrid UNKNOWN IMPORTED)
  set_target_properties(simgrid::simgrid PROPERTIES
    IMPORTED_LOCATION "${SIMGRID_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${SIMGRID_INCLUDE_DIR}")
else()
  message(STATUS "No SimGrid (libsimgrid-dev, scripts/setup.sh): building without --network flow")
endif()
