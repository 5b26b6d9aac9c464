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

if(DOVETAIL_BUILD_COMPILER)
  # MLIR's headers, precompiled once for all targets of the compiler.
  file(WRITE "${PROJECT_BINARY_DIR}/pch/DovetailPCH.cpp" "")
  add_library(DovetailPCH OBJECT "${PROJECT_BINARY_DIR}/pch/DovetailPCH.cpp")
  target_link_libraries(DovetailPCH PRIVATE DovetailHeaders DovetailMLIR)
  target_precompile_headers(DovetailPCH PRIVATE "${PROJECT_SOURCE_DIR}/cmake/MLIRHeaders.h")
endif()

function(dovetail_configure_target name compiler)
  target_link_libraries(${name} PUBLIC DovetailHeaders)
  if(compiler)
    if(NOT DOVETAIL_BUILD_COMPILER)
      message(FATAL_ERROR "${name} needs MLIR, but DOVETAIL_BUILD_COMPILER is OFF")
    endif()
    target_link_libraries(${name} PUBLIC DovetailMLIR)
    target_precompile_headers(${name} REUSE_FROM DovetailPCH)
    # MLIR's headers leave parameters of defaulted virtual functions and generated code unused.
    target_compile_options(${name} PRIVATE -Wno-unused-parameter)
  endif()
endfunction()

# dovetail_add_library(NAME sources... [COMPILER] [LINK libraries...] [DEPENDS targets...])
#
# A static library. COMPILER gives it MLIR's headers, precompiled, and links it with MLIR and LLVM. DEPENDS names
# targets that generate headers (those of add_public_tablegen_target).
function(dovetail_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "COMPILER" "" "LINK;DEPENDS")
  add_library(${name} STATIC ${arg_UNPARSED_ARGUMENTS})
  dovetail_configure_target(${name} "${arg_COMPILER}")
  target_link_libraries(${name} PUBLIC ${arg_LINK})
  if(arg_DEPENDS)
    add_dependencies(${name} ${arg_DEPENDS})
  endif()
endfunction()

# dovetail_add_executable(NAME sources... [COMPILER] [LINK libraries...])
#
# A program in build/<preset>/bin.
function(dovetail_add_executable name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "COMPILER" "" "LINK")
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  # CMake compiles programs with -fPIE, which the header precompiled for libraries cannot be reused with.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC)
  dovetail_configure_target(${name} "${arg_COMPILER}")
  target_link_libraries(${name} PRIVATE ${arg_LINK})
  if(DOVETAIL_SANITIZE MATCHES "address")
    target_sources(${name} PRIVATE "${PROJECT_SOURCE_DIR}/cmake/SanitizerDefaults.cpp")
    set_source_files_properties("${PROJECT_SOURCE_DIR}/cmake/SanitizerDefaults.cpp" PROPERTIES
      SKIP_PRECOMPILE_HEADERS ON)
  endif()
endfunction()
