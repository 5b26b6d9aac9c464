# Unit tests with GoogleTest, registered with CTest.

find_package(GTest REQUIRED CONFIG)

# dovetail_add_unittest(NAME sources... [COMPILER] [LINK libraries...])
#
# A GoogleTest binary in build/<preset>/bin, one CTest test; its cases are counted from the report that it writes to
# build/<preset>/reports/NAME.xml.
function(dovetail_add_unittest name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "COMPILER" "" "LINK")
  set(compiler "")
  if(arg_COMPILER)
    set(compiler COMPILER)
  endif()
  dovetail_add_executable(${name} ${arg_UNPARSED_ARGUMENTS} ${compiler} LINK ${arg_LINK} GTest::gtest_main
    GTest::gmock)
  add_test(NAME ${name} COMMAND ${name} "--gtest_output=xml:${PROJECT_BINARY_DIR}/reports/${name}.xml")
endfunction()
