# Compiler and linker settings that hold for every target.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")

find_program(DOVETAIL_CCACHE ccache)
mark_as_advanced(DOVETAIL_CCACHE)
if(DOVETAIL_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${DOVETAIL_CCACHE}")
endif()
if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache")
  # Without these ccache refuses every file that uses the precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime "${DOVETAIL_CCACHE}")
endif()

add_compile_options(-Wall -Wextra)
# std::stable_sort of GCC 12's library calls a function that the library itself has marked as deprecated.
include(CheckCXXSourceCompiles)
check_cxx_source_compiles("
  #include <version>
  #if !defined(_GLIBCXX_RELEASE) || _GLIBCXX_RELEASE > 12
  #error
  #endif
  int main() {}" DOVETAIL_OLD_STABLE_SORT)
if(DOVETAIL_OLD_STABLE_SORT)
  add_compile_options(-Wno-deprecated-declarations)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # Lets ccache and precompiled headers agree: no time stamps inside. Their templates are instantiated once, in them.
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp" -fpch-instantiate-templates)
endif()

if(DOVETAIL_SANITIZE)
  # LLVM is not instrumented, so checks of its RTTI would report its own types.
  add_compile_options(-fsanitize=${DOVETAIL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize=vptr
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${DOVETAIL_SANITIZE})
endif()
