//===- EmulateBlocks.cpp - Turns block kernels into host functions -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the pass plan-emulate-blocks.
//
//===----------------------------------------------------------------------===//

#include "dovetail/CodeGen/CPU/Compile.h"
#include "dovetail/CodeGen/GPU/Compile.h"
#include "dovetail/CodeGen/Passes.h"
#include "dovetail/Dialect/Dovetail/Definition/ElementBuilder.h"
#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "dovetail/runtime/EmulatedAbi.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cstddef>

namespace dovetail {
#define GEN_PASS_DEF_EMULATEBLOCKS
#include "dovetail/CodeGen/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {

/// Rewrites one kernel.
class Emulation {
public:
  Emulation(gpu::GPUFuncOp kernel, OpBuilder &builder)
      : kernel(kernel), builder(builder), context(builder.getContext()), loc(kernel.getLoc()),
        pointer(LLVM::LLVMPointerType::get(context)) {}

  void run() {
    createFunction();
    body.walk([&](Operation *op) {
      builder.setInsertionPoint(op);
      replace(op);
    });
  }

private:
  void createFunction();
  void replace(Operation *op);
  Value getField(size_t offset, Type type);
  Value getIndexField(size_t offset) {
    return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), getField(offset, builder.getI64Type()));
  }
  /// Calls the function in a field of the thread, with the thread as first argument.
  Value call(size_t offset, ArrayRef<Value> arguments, Type result = {});
  void check(Value base, Value offset, Type scalar, std::optional<int64_t> alignment, bool isWrite);
  void checkShared(Value address, Type type, bool isWrite);

  gpu::GPUFuncOp kernel;
  OpBuilder &builder;
  MLIRContext *context;
  Location loc;
  Type pointer;
  func::FuncOp body;
  Value thread;
  DenseSet<Value> shared; ///< Addresses in shared memory, which have become pointers like others.
};

} // namespace

/// `@k(pointers, numbers, thread)`, which takes the kernel's arguments from arrays.
void Emulation::createFunction() {
  body = func::FuncOp::create(builder, loc, kernel.getName(), builder.getFunctionType({pointer, pointer, pointer}, {}));
  Block *block = body.addEntryBlock();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(block);
  thread = block->getArgument(2);
  Block &source = kernel.getBody().front();
  unsigned numPointers = llvm::count_if(source.getArgumentTypes(), [&](Type type) { return type == pointer; });
  for (BlockArgument argument : source.getArguments()) {
    Type type = argument.getType();
    unsigned number = argument.getArgNumber();
    Value array = block->getArgument(number < numPointers ? 0 : 1);
    int32_t position = number < numPointers ? number : number - numPointers;
    Value address = LLVM::GEPOp::create(builder, loc, pointer, type, array, ArrayRef<LLVM::GEPArg>{position});
    argument.replaceAllUsesWith(LLVM::LoadOp::create(builder, loc, type, address));
  }
  block->getOperations().splice(block->end(), source.getOperations());
}

Value Emulation::getField(size_t offset, Type type) {
  Value address = LLVM::GEPOp::create(builder, loc, pointer, builder.getI8Type(), thread,
                                      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
  return LLVM::LoadOp::create(builder, loc, type, address);
}

Value Emulation::call(size_t offset, ArrayRef<Value> arguments, Type result) {
  SmallVector<Value> operands = {getField(offset, pointer), thread};
  llvm::append_range(operands, arguments);
  SmallVector<Type> types;
  for (Value operand : ArrayRef(operands).drop_front())
    types.push_back(operand.getType());
  auto type = LLVM::LLVMFunctionType::get(result ? result : LLVM::LLVMVoidType::get(context), types);
  auto call = LLVM::CallOp::create(builder, loc, type, operands);
  return result ? call.getResult() : Value();
}

void Emulation::check(Value base, Value offset, Type scalar, std::optional<int64_t> alignment, bool isWrite) {
  Type inMemory = scalar.isInteger(1) ? builder.getI8Type() : scalar;
  Value position = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), offset);
  Value address = LLVM::GEPOp::create(builder, loc, pointer, inMemory, base, ArrayRef<LLVM::GEPArg>{position});
  int64_t size = inMemory.getIntOrFloatBitWidth() / 8;
  Value bytes = LLVM::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(size));
  Value multiple = LLVM::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(alignment.value_or(size)));
  Value write = LLVM::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(isWrite));
  call(offsetof(DovetailBlockThread, check), {address, bytes, multiple, write});
}

void Emulation::checkShared(Value address, Type type, bool isWrite) {
  if (!shared.contains(address))
    return;
  int64_t size = DataLayout::closest(kernel).getTypeSize(type).getFixedValue();
  Value bytes = LLVM::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(size));
  Value write = LLVM::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(isWrite));
  call(offsetof(DovetailBlockThread, checkShared), {address, bytes, write});
}

void Emulation::replace(Operation *op) {
  auto replaceBy = [&](Value value) {
    op->getResult(0).replaceAllUsesWith(value);
    op->erase();
  };
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](gpu::ThreadIdOp) { replaceBy(getIndexField(offsetof(DovetailBlockThread, threadIndex))); })
      .Case([&](gpu::BlockIdOp) { replaceBy(getIndexField(offsetof(DovetailBlockThread, blockIndex))); })
      .Case([&](gpu::BlockDimOp) { replaceBy(getIndexField(offsetof(DovetailBlockThread, blockSize))); })
      .Case([&](gpu::GridDimOp) { replaceBy(getIndexField(offsetof(DovetailBlockThread, gridSize))); })
      .Case([&](gpu::BarrierOp) {
        call(offsetof(DovetailBlockThread, barrier), {});
        op->erase();
      })
      .Case([&](gpu::ShuffleOp shuffle) {
        Value bits = LLVM::ZExtOp::create(builder, loc, builder.getI64Type(), shuffle.getValue());
        bits = call(offsetof(DovetailBlockThread, shuffleXor), {bits, shuffle.getOffset()}, builder.getI64Type());
        shuffle.getShuffleResult().replaceAllUsesWith(
            LLVM::TruncOp::create(builder, loc, shuffle.getValue().getType(), bits));
        op->erase();
      })
      .Case([&](LLVM::AddressOfOp address) {
        // Shared memory is the block's. A kernel has one object of it.
        if (cast<LLVM::LLVMPointerType>(address.getType()).getAddressSpace() == 0)
          return;
        Value memory = getField(offsetof(DovetailBlockThread, shared), pointer);
        shared.insert(memory);
        replaceBy(memory);
      })
      .Case([&](LLVM::GEPOp element) {
        if (!shared.contains(element.getBase()))
          return;
        element.getResult().setType(cast<LLVM::LLVMPointerType>(pointer));
        shared.insert(element);
      })
      .Case([&](LLVM::LoadOp load) { checkShared(load.getAddr(), load.getType(), /*isWrite=*/false); })
      .Case([&](LLVM::StoreOp store) { checkShared(store.getAddr(), store.getValue().getType(), /*isWrite=*/true); })
      .Case([&](plan::LoadOp load) {
        check(load.getBase(), load.getOffset(), load.getType(), load.getAlignment(), /*isWrite=*/false);
      })
      .Case([&](plan::ReadBackOp load) {
        check(load.getBase(), load.getOffset(), load.getType(), std::nullopt, /*isWrite=*/false);
      })
      .Case([&](plan::StoreOp store) {
        check(store.getBase(), store.getOffset(), store.getValue().getType(), store.getAlignment(), true);
      })
      .Case([&](plan::CheckIndexOp check) {
        Value number = arith::ConstantIndexOp::create(builder, loc, check.getNumber());
        this->check(check.getRecords(), number, builder.getI64Type(), std::nullopt, /*isWrite=*/true);
      })
      .Case([&](gpu::ReturnOp) {
        func::ReturnOp::create(builder, loc);
        op->erase();
      });
}

namespace {
struct EmulateBlocks : dovetail::impl::EmulateBlocksBase<EmulateBlocks> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto kernels = module.lookupSymbol<gpu::GPUModuleOp>(blockKernelsModule);
    if (!kernels)
      return;
    OpBuilder builder(kernels);
    auto code = ModuleOp::create(builder, module.getLoc(), cpuKernelsModule);
    for (Operation &op : llvm::make_early_inc_range(kernels.getBodyRegion().front())) {
      builder.setInsertionPointToEnd(code.getBody());
      auto global = dyn_cast<LLVM::GlobalOp>(op);
      if (auto kernel = dyn_cast<gpu::GPUFuncOp>(op))
        Emulation(kernel, builder).run();
      else if (global && global.getAddrSpace() == 0)
        op.moveBefore(code.getBody(), code.getBody()->end());
    }
    kernels.erase();
  }
};
} // namespace
