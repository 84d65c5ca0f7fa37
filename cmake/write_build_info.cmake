# Run at every build: writes OUTPUT from build_info.cc.in, only when the commit has changed.
execute_process(
  COMMAND git describe --always --dirty --abbrev=12
  WORKING_DIRECTORY "${SOURCE_DIR}"
  OUTPUT_VARIABLE ISTHMUS_COMMIT
  OUTPUT_STRIP_TRAILING_WHITESPACE
  ERROR_QUIET
  RESULT_VARIABLE result)
if(NOT result EQUAL 0 OR ISTHMUS_COMMIT STREQUAL "")
  set(ISTHMUS_COMMIT unknown)
endif()
configure_file("${SOURCE_DIR}/cmake/build_info.cc.in" "${OUTPUT}" @ONLY)
