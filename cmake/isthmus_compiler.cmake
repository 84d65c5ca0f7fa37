# Language, flags for everything (the fewest), warnings for our own code, ccache.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug or RelWithDebInfo" FORCE)
endif()

find_program(ISTHMUS_CCACHE ccache)
if(ISTHMUS_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths below the root count as relative, so that all checkouts share what one has compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
      "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
      # What it takes to share precompiled headers and what includes them.
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      "${ISTHMUS_CCACHE}")
endif()

# Equal inputs give equal bytes: the compiler may not fuse a multiply and an add where it likes.
add_compile_options(-ffp-contract=off)

if(ISTHMUS_SANITIZE)
  add_compile_options(-fsanitize=${ISTHMUS_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
  add_link_options(-fsanitize=${ISTHMUS_SANITIZE})
endif()

add_library(isthmus_warnings INTERFACE)
target_compile_options(isthmus_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
  -Wzero-as-null-pointer-constant
  # Designated initialisers leave the other members at their defaults on purpose.
  -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 warns falsely on `"text" + std::to_string(i)` when it optimises.
  target_compile_options(isthmus_warnings INTERFACE -Wno-restrict)
endif()
if(ISTHMUS_WERROR)
  target_compile_options(isthmus_warnings INTERFACE -Werror)
endif()
