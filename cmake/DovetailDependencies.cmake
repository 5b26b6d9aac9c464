# Finds the libraries that Dovetail is built on.

# This one no distribution has: whoever lacks it has not run the script yet, and may lack others, too.
if(DOVETAIL_BUILD_COMPILER AND NOT EXISTS "${DOVETAIL_ONNX_PREFIX}")
  message(FATAL_ERROR "libonnx is not in ${DOVETAIL_ONNX_PREFIX}; run scripts/setup in the checkout, which installs all "
                      "that the build needs, or give -DDOVETAIL_ONNX_PREFIX=FOLDER")
endif()

find_package(Threads REQUIRED)
find_package(absl REQUIRED CONFIG)
find_package(FlatBuffers REQUIRED CONFIG NAMES FlatBuffers Flatbuffers flatbuffers)
find_package(dnnl REQUIRED CONFIG)
find_package(ZLIB REQUIRED)
find_package(CLI11 REQUIRED CONFIG)
find_package(nlohmann_json REQUIRED CONFIG)
find_program(DOVETAIL_FLATC flatc REQUIRED)

# xxHash comes without a CMake package.
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
find_library(XXHASH_LIBRARY xxhash REQUIRED)
mark_as_advanced(XXHASH_INCLUDE_DIR XXHASH_LIBRARY)
add_library(xxHash::xxhash UNKNOWN IMPORTED)
set_target_properties(xxHash::xxhash PROPERTIES
  IMPORTED_LOCATION "${XXHASH_LIBRARY}"
  INTERFACE_INCLUDE_DIRECTORIES "${XXHASH_INCLUDE_DIR}")

if(NOT DOVETAIL_BUILD_COMPILER)
  return()
endif()

# LLVM's own dependencies (zlib, zstd) are looked for in C, which this project does not enable otherwise.
enable_language(C)
find_package(MLIR REQUIRED CONFIG PATHS "${DOVETAIL_LLVM_PREFIX}" NO_DEFAULT_PATH)
find_package(LLD REQUIRED CONFIG PATHS "${DOVETAIL_LLVM_PREFIX}" NO_DEFAULT_PATH)
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)

find_package(Protobuf REQUIRED)
find_package(ONNX REQUIRED CONFIG PATHS "${DOVETAIL_ONNX_PREFIX}" NO_DEFAULT_PATH)

include(DovetailStaticLLVM)
# Says of a target that it is linked with LLVM's archives, as all is that is installed. Tests and tools of developers are
# linked with LLVM's shared libraries.
define_property(TARGET PROPERTY DOVETAIL_STATIC_LLVM)

# What every target of the compiler needs.
separate_arguments(dovetail_llvm_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
add_library(DovetailMLIR INTERFACE)
target_include_directories(DovetailMLIR SYSTEM INTERFACE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
target_compile_definitions(DovetailMLIR INTERFACE ${dovetail_llvm_definitions})
target_link_libraries(DovetailMLIR INTERFACE
  "$<IF:$<BOOL:$<TARGET_PROPERTY:DOVETAIL_STATIC_LLVM>>,DovetailStaticLLVM,MLIR;LLVM;lldELF;lldCommon>")

# libonnx in its link order; its headers as system headers.
add_library(DovetailONNX INTERFACE)
target_include_directories(DovetailONNX SYSTEM INTERFACE "${DOVETAIL_ONNX_PREFIX}/include")
target_link_libraries(DovetailONNX INTERFACE ONNX::onnx ONNX::onnx_proto protobuf::libprotobuf)
