# isthmus_test_header(<pch> [<option>...]): the precompiled header of all tests that are compiled with
# these options: GoogleTest and what nearly every test includes, a quarter of its compile time.
function(isthmus_test_header pch)
  if(TARGET ${pch})
    return()
  endif()
  add_library(${pch} OBJECT "${PROJECT_SOURCE_DIR}/cmake/test_pch.cc")
  target_link_libraries(${pch} PRIVATE isthmus_warnings GTest::gmock GTest::gtest Threads::Threads)
  # g++ 12 warns falsely on `"text" + std::to_string(i)` behind a precompiled header.
  target_compile_options(${pch} PRIVATE ${ARGN} -Wno-array-bounds)
  target_precompile_headers(${pch} PRIVATE
    <cstdint> <functional> <map> <memory> <optional> <string> <vector>
    <gmock/gmock.h> <gtest/gtest.h>)
endfunction()

# isthmus_test(<name> LABEL <label> SOURCES <file>... [DEPENDS <our libraries>...] [LINK <others>...])
#
# Makes program <name> from GoogleTest sources and gives ctest one entry per test, "<label>.<test>",
# with the label. Tests run in the root of the tree. A program may bring its own main().
#
# In the sources: ISTHMUS_SOURCE_DIR is the root of the tree, ISTHMUS_BINARY the path of `isthmus`.
function(isthmus_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LABEL" "SOURCES;DEPENDS;LINK")
  set(depends ${arg_DEPENDS})
  list(TRANSFORM depends PREPEND isthmus_)
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${depends} ${arg_LINK} isthmus_warnings
                        GTest::gmock GTest::gtest GTest::gtest_main Threads::Threads)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  isthmus_loads_flow_library(${name})
  target_compile_definitions(${name} PRIVATE
    ISTHMUS_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    ISTHMUS_BINARY="${PROJECT_BINARY_DIR}/isthmus")
  if(ISTHMUS_SANITIZE AND arg_LABEL STREQUAL "unit")
    # The sanitizers make optimising GoogleTest's macros dear, and these tests are short.
    target_compile_options(${name} PRIVATE -O0)
    isthmus_test_header(isthmus_test_pch_plain -O0)
    target_precompile_headers(${name} REUSE_FROM isthmus_test_pch_plain)
  else()
    isthmus_test_header(isthmus_test_pch)
    target_precompile_headers(${name} REUSE_FROM isthmus_test_pch)
  endif()
  target_compile_options(${name} PRIVATE -Wno-array-bounds)
  gtest_discover_tests(${name}
    TEST_PREFIX "${arg_LABEL}."
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
    DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS "${arg_LABEL}" TIMEOUT 600)
  # Target tests_<label> builds all programs of one label.
  if(NOT TARGET tests_${arg_LABEL})
    add_custom_target(tests_${arg_LABEL})
  endif()
  add_dependencies(tests_${arg_LABEL} ${name})
endfunction()

# isthmus_unit_tests(<folder> [DEPENDS ...] [LINK ...]): all of tests/unit/<folder> as one program,
# unit_<folder>_test, linked with the folder's library.
function(isthmus_unit_tests folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPENDS;LINK")
  isthmus_glob(sources "tests/unit/${folder}" "*.cc" "")
  if(sources)
    isthmus_test(unit_${folder}_test LABEL unit SOURCES ${sources}
                 DEPENDS ${folder} ${arg_DEPENDS} LINK ${arg_LINK})
  endif()
endfunction()

# isthmus_tests_of_kind(<kind> [DEPENDS ...] [LINK ...]): every tests/<kind>/**/x_test.cc is a
# program of its own, <kind>_x_test, and every x_test.py a test run by python3; other sources there
# are shared by the programs. Exit code 77 of a script counts as skipped.
function(isthmus_tests_of_kind kind)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPENDS;LINK")
  isthmus_glob(shared "tests/${kind}" "*.cc" "")
  list(FILTER shared EXCLUDE REGEX "_test\\.cc$")
  isthmus_glob(sources "tests/${kind}" "*_test.cc" "")
  foreach(source IN LISTS sources)
    get_filename_component(stem "${source}" NAME_WE)
    isthmus_test(${kind}_${stem} LABEL ${kind} SOURCES "${source}" ${shared}
                 DEPENDS ${arg_DEPENDS} LINK ${arg_LINK})
  endforeach()
  isthmus_glob(scripts "tests/${kind}" "*_test.py" "")
  foreach(script IN LISTS scripts)
    get_filename_component(stem "${script}" NAME_WE)
    add_test(NAME ${kind}.${stem} COMMAND "${PROJECT_SOURCE_DIR}/tests/run_python.sh" "${script}"
             WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
    set_tests_properties(${kind}.${stem} PROPERTIES
      LABELS "${kind}" TIMEOUT 600 SKIP_RETURN_CODE 77
      ENVIRONMENT "ISTHMUS_BINARY=${PROJECT_BINARY_DIR}/isthmus;ISTHMUS_SOURCE_DIR=${PROJECT_SOURCE_DIR};PYTHONDONTWRITEBYTECODE=1")
  endforeach()
endfunction()
