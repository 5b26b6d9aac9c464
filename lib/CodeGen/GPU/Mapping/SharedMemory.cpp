//===- SharedMemory.cpp - The shared memory of a kernel's blocks ----------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines SharedMemory.
//
//===----------------------------------------------------------------------===//

#include "SharedMemory.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace dovetail;

/// The address space of shared memory.
static constexpr unsigned sharedSpace = 3;

/// Booleans occupy a byte.
static Type getTypeInMemory(Type type) { return type.isInteger(1) ? IntegerType::get(type.getContext(), 8) : type; }

Value SharedMemory::getAddress(Type type, Value position) {
  OpBuilder &builder = elements.getBuilder();
  Location loc = elements.getLoc();
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext(), sharedSpace);
  if (!memory) {
    OpBuilder::InsertionGuard guard(builder);
    Operation *around = builder.getInsertionBlock()->getParentOp();
    auto function = dyn_cast<gpu::GPUFuncOp>(around);
    builder.setInsertionPoint(function ? function : around->getParentOfType<gpu::GPUFuncOp>());
    // Its size is known when all of the kernel is.
    memory = LLVM::GlobalOp::create(builder, loc, LLVM::LLVMArrayType::get(builder.getI8Type(), 0),
                                    /*isConstant=*/false, LLVM::Linkage::Internal, name, Attribute(), alignment,
                                    sharedSpace);
  }
  Value base = LLVM::AddressOfOp::create(builder, loc, pointer, memory.getSymName());
  Value number = elements.create<arith::IndexCastOp>(builder.getI64Type(), position);
  return LLVM::GEPOp::create(builder, loc, pointer, getTypeInMemory(type), base, ArrayRef<LLVM::GEPArg>{number});
}

void SharedMemory::store(Value value, Value position, int64_t size) {
  Type type = value.getType(), inMemory = getTypeInMemory(type);
  bytes = std::max<int64_t>(bytes, size * getByteWidth(type));
  Value address = getAddress(type, position);
  Value stored = type == inMemory ? value : elements.create<arith::ExtUIOp>(inMemory, value);
  LLVM::StoreOp::create(elements.getBuilder(), elements.getLoc(), stored, address);
}

Value SharedMemory::load(Type type, Value position) {
  Type inMemory = getTypeInMemory(type);
  Value value = LLVM::LoadOp::create(elements.getBuilder(), elements.getLoc(), inMemory, getAddress(type, position));
  return type == inMemory ? value : elements.create<arith::TruncIOp>(type, value);
}

void SharedMemory::storeRun(ValueRange values, Value position, int64_t size) {
  Type type = values.front().getType();
  if (values.size() == 1 || type.isInteger(1)) {
    for (auto [i, value] : llvm::enumerate(values))
      store(value, elements.addI(position, i), size);
    return;
  }
  bytes = std::max<int64_t>(bytes, size * getByteWidth(type));
  OpBuilder &builder = elements.getBuilder();
  auto vector = VectorType::get(values.size(), type);
  Value all = LLVM::UndefOp::create(builder, elements.getLoc(), vector);
  for (auto [i, value] : llvm::enumerate(values)) {
    Value number = LLVM::ConstantOp::create(builder, elements.getLoc(), builder.getI32IntegerAttr(i));
    all = LLVM::InsertElementOp::create(builder, elements.getLoc(), all, value, number);
  }
  LLVM::StoreOp::create(builder, elements.getLoc(), all, getAddress(type, position),
                        values.size() * getByteWidth(type));
}

SmallVector<Value> SharedMemory::loadRun(Type type, Value position, int64_t count) {
  SmallVector<Value> values;
  if (count == 1 || type.isInteger(1)) {
    for (int64_t i = 0; i < count; ++i)
      values.push_back(load(type, elements.addI(position, i)));
    return values;
  }
  OpBuilder &builder = elements.getBuilder();
  Value all = LLVM::LoadOp::create(builder, elements.getLoc(), VectorType::get(count, type), getAddress(type, position),
                                   count * getByteWidth(type));
  for (int64_t i = 0; i < count; ++i) {
    Value number = LLVM::ConstantOp::create(builder, elements.getLoc(), builder.getI32IntegerAttr(i));
    values.push_back(LLVM::ExtractElementOp::create(builder, elements.getLoc(), all, number));
  }
  return values;
}

void SharedMemory::finish() {
  if (memory)
    memory.setGlobalType(LLVM::LLVMArrayType::get(elements.getBuilder().getI8Type(), bytes));
}
