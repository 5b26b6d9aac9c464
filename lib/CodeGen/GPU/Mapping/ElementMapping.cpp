//===- ElementMapping.cpp - A thread for each element ---------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how kernels whose elements share nothing are divided among threads: an element for each, or a vector of
// neighbours.
//
//===----------------------------------------------------------------------===//

#include "Mappings.h"

using namespace mlir;
using namespace dovetail;

namespace {
class ElementMapping : public BlockMapping {
public:
  using BlockMapping::BlockMapping;

  bool take() override;

private:
  void emitTile(Value tile) override;
  Value emitLoad(const Memory &memory, Type elementType, ArrayRef<Value> index) override;
  /// Whether a thread may compute `width` neighbours along `loop` together.
  bool mayHaveWidth(unsigned loop, int64_t width);

  int64_t width = 1;    ///< Neighbours along the innermost loop that a thread computes together.
  Value first;          ///< The innermost coordinate of the first of them.
  bool isFirst = false; ///< Whether it is the first of them that is computed.
};
} // namespace

bool ElementMapping::take() {
  if (!divideElements())
    return true;
  for (int64_t width : {8, 4, 2})
    if (mayHaveWidth(tileLoops.back(), width)) {
      this->width = tileSteps.back() = width;
      break;
    }
  return true;
}

bool ElementMapping::mayHaveWidth(unsigned loop, int64_t width) {
  if (!isStatic(loop) || extents[loop] % width != 0)
    return false;
  return llvm::all_of(llvm::enumerate(kernel.getYield().getValues()), [&](auto each) {
    plan::LayoutAttr layout = kernel.getResultLayout(each.index());
    auto type = cast<RankedTensorType>(each.value().getType());
    return isAligned(layout, type, width) && layout.getInnermost(type) == static_cast<int>(loop) &&
           getByteWidth(ElementBuilder::scalarType(type.getElementType())) * width <= device.accessBytes;
  });
}

void ElementMapping::emitTile(Value tile) {
  setIndex(tile);
  if (width == 1)
    return emitStores(emitResults());
  unsigned inner = tileLoops.back();
  first = index[inner];
  SmallVector<Store> stores;
  for (int64_t i = 0; i < width; ++i) {
    isFirst = i == 0;
    index[inner] = elements.addI(first, i);
    for (Store &store : emitResults()) {
      if (isFirst)
        store.alignment = builder.getI64IntegerAttr(width * getByteWidth(store.value.getType()));
      stores.push_back(store);
    }
  }
  emitStores(stores);
}

Value ElementMapping::emitLoad(const Memory &memory, Type elementType, ArrayRef<Value> index) {
  Value value = BlockMapping::emitLoad(memory, elementType, index);
  // Where the elements that are computed together begin, those that they need often begin, too.
  if (width > 1 && isFirst)
    alignLoad(value, memory, index, first, width);
  return value;
}

std::unique_ptr<BlockMapping> dovetail::createElementMapping(const BlockKernel &kernel) {
  return std::make_unique<ElementMapping>(kernel);
}
