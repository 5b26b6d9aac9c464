//===- SharedMemory.h - The shared memory of a kernel's blocks --*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares SharedMemory.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_CODEGEN_GPU_MAPPING_SHAREDMEMORY_H
#define DOVETAIL_LIB_CODEGEN_GPU_MAPPING_SHAREDMEMORY_H

#include "dovetail/CodeGen/DeviceDescription.h"
#include "dovetail/Dialect/Dovetail/Definition/ElementBuilder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/MathExtras.h"

namespace dovetail {

/// Bytes that an element takes in memory, where booleans are bytes.
inline int64_t getByteWidth(mlir::Type scalar) { return llvm::divideCeil(scalar.getIntOrFloatBitWidth(), 8); }

/// The shared memory of the blocks of one kernel, which is as large as what is stored there. It is accessed as an array
/// of elements of any type: different parts may have different types.
class SharedMemory {
public:
  /// Accesses are emitted by `elements`; the memory is called `<kernel>.shared`.
  SharedMemory(ElementBuilder &elements, llvm::StringRef kernel, const DeviceDescription &device)
      : elements(elements), name((kernel + ".shared").str()), alignment(device.accessBytes) {}

  /// Writes element `position` of the memory, taken as an array of `size` elements.
  void store(mlir::Value value, mlir::Value position, int64_t size);
  mlir::Value load(mlir::Type type, mlir::Value position);
  /// The same for neighbours, the first of which is at a multiple of their number, a power of two.
  void storeRun(mlir::ValueRange values, mlir::Value position, int64_t size);
  llvm::SmallVector<mlir::Value> loadRun(mlir::Type type, mlir::Value position, int64_t count);

  /// What a block needs.
  int64_t getBytes() const { return bytes; }
  /// Gives the memory its size, when all of the kernel is there.
  void finish();

private:
  /// The address of an element of the memory, taken as an array of `type`.
  mlir::Value getAddress(mlir::Type type, mlir::Value position);

  ElementBuilder &elements;
  std::string name;
  int64_t alignment;
  int64_t bytes = 0;
  mlir::LLVM::GlobalOp memory;
};

} // namespace dovetail

#endif // DOVETAIL_LIB_CODEGEN_GPU_MAPPING_SHAREDMEMORY_H
