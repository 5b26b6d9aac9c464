# Functions that the parts define their targets with.

# Adds the part in `folder`, if it is there.
function(dovetail_add_part folder)
  if(EXISTS "${PROJECT_SOURCE_DIR}/${folder}/CMakeLists.txt")
    add_subdirectory("${PROJECT_SOURCE_DIR}/${folder}" "${PROJECT_BINARY_DIR}/${folder}")
  endif()
endfunction()

# Include directories that every target shares: the sources' and the generated headers'.
add_library(DovetailHeaders INTERFACE)
target_include_directories(DovetailHeaders INTERFACE
  "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/runtime/include"
  "${PROJECT_BINARY_DIR}/include")

# What the runtime and plug-ins that it opens have to agree about, as a digest: "dovetail/runtime/PluginBuild.h".
file(GLOB dovetail_plugin_headers CONFIGURE_DEPENDS
  "${PROJECT_SOURCE_DIR}/runtime/include/dovetail/*/*.h")
set(dovetail_plugin_build "${PROJECT_BINARY_DIR}/include/dovetail/runtime/PluginBuild.h")
string(JOIN " " dovetail_toolchain "${PROJECT_VERSION}" "${CMAKE_CXX_COMPILER_ID}" "${CMAKE_CXX_COMPILER_VERSION}"
  "${CMAKE_SYSTEM_PROCESSOR}" "${CMAKE_BUILD_TYPE}" "${DOVETAIL_SANITIZE}" "${absl_VERSION}")
add_custom_command(
  OUTPUT "${dovetail_plugin_build}"
  COMMAND "${CMAKE_COMMAND}" "-DSOURCE=${PROJECT_SOURCE_DIR}/runtime/include/dovetail"
          "-DTOOLCHAIN=${dovetail_toolchain}" "-DOUTPUT=${dovetail_plugin_build}"
          -P "${PROJECT_SOURCE_DIR}/cmake/PluginBuild.cmake"
  DEPENDS ${dovetail_plugin_headers} "${PROJECT_SOURCE_DIR}/cmake/PluginBuild.cmake"
  COMMENT "Generating PluginBuild.h"
  VERBATIM)
add_custom_target(DovetailPluginBuildHeader DEPENDS "${dovetail_plugin_build}")
add_dependencies(DovetailHeaders DovetailPluginBuildHeader)

# Commands and the import are small rather than fast: a wheel has little room, and they take no time. The precompiled
# header says which targets these are, as its options have to be theirs.
function(dovetail_optimize_size name precompiled)
  if(precompiled MATCHES "^Dovetail(Command|Import)PCH$")
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-Os>)
  endif()
endfunction()

# dovetail_precompile(NAME header [COMPILER] [TESTS] [LINK libraries...] [DEPENDS targets...])
#
# Precompiles `header`, a file of cmake/, once for all targets that name it as PRECOMPILED. DEPENDS names targets that
# generate headers which it includes. TESTS says that unit tests use it, whose options are others.
function(dovetail_precompile name header)
  cmake_parse_arguments(PARSE_ARGV 2 arg "COMPILER;TESTS" "" "LINK;DEPENDS")
  # Written once: else CMake would have it compiled anew each time that it runs.
  if(NOT EXISTS "${PROJECT_BINARY_DIR}/pch/${name}.cpp")
    file(WRITE "${PROJECT_BINARY_DIR}/pch/${name}.cpp" "")
  endif()
  add_library(${name} OBJECT "${PROJECT_BINARY_DIR}/pch/${name}.cpp")
  target_link_libraries(${name} PRIVATE DovetailHeaders ${arg_LINK})
  if(arg_COMPILER)
    target_link_libraries(${name} PRIVATE DovetailMLIR)
    target_compile_options(${name} PRIVATE -Wno-unused-parameter)
  endif()
  if(arg_TESTS)
    target_compile_options(${name} PRIVATE ${DOVETAIL_TEST_OPTIONS})
  endif()
  dovetail_optimize_size(${name} ${name})
  target_precompile_headers(${name} PRIVATE "${PROJECT_SOURCE_DIR}/cmake/${header}")
  if(arg_DEPENDS)
    add_dependencies(${name} ${arg_DEPENDS})
  endif()
  add_dependencies(DovetailPrecompiled ${name})
endfunction()

# All precompiled headers, for tools that read sources as the compiler does.
add_custom_target(DovetailPrecompiled)
dovetail_precompile(DovetailRuntimePCH RuntimeHeaders.h)
dovetail_precompile(DovetailCommandPCH CommandHeaders.h LINK CLI11::CLI11 nlohmann_json::nlohmann_json)
if(DOVETAIL_BUILD_COMPILER)
  # Whatever names a dialect of ours includes all of MLIR that its header needs, so these hold the dialects, too.
  dovetail_precompile(DovetailDialectPCH DialectHeaders.h COMPILER DEPENDS MLIRDovetailIncGen)
  dovetail_precompile(DovetailPlanPCH PlanHeaders.h COMPILER DEPENDS MLIRDovetailIncGen MLIRDovetailPlanIncGen)
  dovetail_precompile(DovetailImportPCH ImportHeaders.h COMPILER LINK DovetailONNX DEPENDS MLIRDovetailIncGen)
endif()

function(dovetail_configure_target name compiler precompiled)
  # Users of a shared library need its own headers only.
  get_target_property(type ${name} TYPE)
  set(scope PUBLIC)
  if(type STREQUAL "SHARED_LIBRARY")
    set(scope PRIVATE)
  endif()
  target_link_libraries(${name} ${scope} DovetailHeaders)
  if(compiler)
    if(NOT DOVETAIL_BUILD_COMPILER)
      message(FATAL_ERROR "${name} needs MLIR, but DOVETAIL_BUILD_COMPILER is OFF")
    endif()
    target_link_libraries(${name} ${scope} DovetailMLIR)
    # MLIR's headers leave parameters of defaulted virtual functions and generated code unused.
    target_compile_options(${name} PRIVATE -Wno-unused-parameter)
  endif()
  if(NOT precompiled)
    set(precompiled DovetailRuntimePCH)
    if(compiler)
      set(precompiled DovetailPlanPCH)
    endif()
  endif()
  dovetail_optimize_size(${name} ${precompiled})
  target_precompile_headers(${name} REUSE_FROM ${precompiled})
endfunction()

# dovetail_add_library(NAME sources... [COMPILER] [PRECOMPILED target] [LINK libraries...] [DEPENDS targets...])
#
# A static library. COMPILER links it with MLIR and LLVM. PRECOMPILED names the precompiled headers that it uses: those of
# dovetail_precompile, by default DovetailPlanPCH with COMPILER and DovetailRuntimePCH without. DEPENDS names targets that
# generate headers (those of add_public_tablegen_target).
function(dovetail_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "COMPILER" "PRECOMPILED" "LINK;DEPENDS")
  add_library(${name} STATIC ${arg_UNPARSED_ARGUMENTS})
  dovetail_configure_target(${name} "${arg_COMPILER}" "${arg_PRECOMPILED}")
  target_link_libraries(${name} PUBLIC ${arg_LINK})
  if(arg_DEPENDS)
    add_dependencies(${name} ${arg_DEPENDS})
  endif()
endfunction()

# dovetail_add_executable(NAME sources... [COMPILER] [PRECOMPILED target] [LINK libraries...])
#
# A program in build/<preset>/bin. COMPILER and PRECOMPILED are those of dovetail_add_library.
function(dovetail_add_executable name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "COMPILER" "PRECOMPILED" "LINK")
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  # CMake compiles programs with -fPIE, which the header precompiled for libraries cannot be reused with.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC)
  dovetail_configure_target(${name} "${arg_COMPILER}" "${arg_PRECOMPILED}")
  target_link_libraries(${name} PRIVATE ${arg_LINK})
  if(DOVETAIL_SANITIZE MATCHES "address")
    target_sources(${name} PRIVATE "${PROJECT_SOURCE_DIR}/cmake/SanitizerDefaults.cpp")
    set_source_files_properties("${PROJECT_SOURCE_DIR}/cmake/SanitizerDefaults.cpp" PROPERTIES
      SKIP_PRECOMPILE_HEADERS ON)
  endif()
endfunction()
