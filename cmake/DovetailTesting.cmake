# Unit tests with GoogleTest, registered with CTest.

find_package(GTest REQUIRED CONFIG)

# Tests are compiled more often than their code runs.
set(DOVETAIL_TEST_OPTIONS "")
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  set(DOVETAIL_TEST_OPTIONS -O1)
endif()
dovetail_precompile(DovetailRuntimeTestPCH RuntimeTestHeaders.h TESTS LINK GTest::gtest GTest::gmock)
if(DOVETAIL_BUILD_COMPILER)
  dovetail_precompile(DovetailCompilerTestPCH CompilerTestHeaders.h COMPILER TESTS LINK GTest::gtest GTest::gmock
    DEPENDS MLIRDovetailIncGen MLIRDovetailPlanIncGen)
endif()

# dovetail_add_unittest(NAME sources... [COMPILER] [QUICK] [SHARDS number] [LINK libraries...])
#
# A GoogleTest binary in build/<preset>/bin, and a CTest test, or with SHARDS so many, NAME.0 and on, among which
# GoogleTest divides the cases. Cases are counted from the reports that they write to build/<preset>/reports/TEST.xml.
# QUICK says that `make check` runs them, too.
function(dovetail_add_unittest name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "COMPILER;QUICK" "SHARDS" "LINK")
  set(kind PRECOMPILED DovetailRuntimeTestPCH)
  if(arg_COMPILER)
    set(kind COMPILER PRECOMPILED DovetailCompilerTestPCH)
  endif()
  dovetail_add_executable(${name} ${arg_UNPARSED_ARGUMENTS} ${kind} LINK ${arg_LINK} GTest::gtest_main
    GTest::gmock)
  target_compile_options(${name} PRIVATE ${DOVETAIL_TEST_OPTIONS})
  set(tests ${name})
  if(arg_SHARDS)
    math(EXPR last "${arg_SHARDS} - 1")
    set(tests "")
    foreach(shard RANGE ${last})
      list(APPEND tests ${name}.${shard})
    endforeach()
  endif()
  set(shard 0)
  foreach(test IN LISTS tests)
    add_test(NAME ${test} COMMAND ${name} "--gtest_output=xml:${PROJECT_BINARY_DIR}/reports/${test}.xml")
    if(arg_SHARDS)
      set_tests_properties(${test} PROPERTIES
        ENVIRONMENT "GTEST_TOTAL_SHARDS=${arg_SHARDS};GTEST_SHARD_INDEX=${shard}")
    endif()
    if(arg_QUICK)
      set_tests_properties(${test} PROPERTIES LABELS quick)
    endif()
    math(EXPR shard "${shard} + 1")
  endforeach()
endfunction()
