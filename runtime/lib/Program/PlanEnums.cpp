//===- PlanEnums.cpp - Enumerations of the schema as the runtime's --------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what each enumeration of a plan's schema is in the runtime.
//
//===----------------------------------------------------------------------===//

#include "PlanEnums.h"

using namespace dovetail;
using namespace dovetail::runtime;

std::optional<ElementType> dovetail::runtime::fromSchema(artifact::ElementType value) {
  switch (value) {
  case artifact::ElementType::F32:
    return ElementType::F32;
  case artifact::ElementType::F64:
    return ElementType::F64;
  case artifact::ElementType::F16:
    return ElementType::F16;
  case artifact::ElementType::BF16:
    return ElementType::BF16;
  case artifact::ElementType::I8:
    return ElementType::I8;
  case artifact::ElementType::I16:
    return ElementType::I16;
  case artifact::ElementType::I32:
    return ElementType::I32;
  case artifact::ElementType::I64:
    return ElementType::I64;
  case artifact::ElementType::U8:
    return ElementType::U8;
  case artifact::ElementType::U16:
    return ElementType::U16;
  case artifact::ElementType::U32:
    return ElementType::U32;
  case artifact::ElementType::U64:
    return ElementType::U64;
  case artifact::ElementType::Bool:
    return ElementType::Bool;
  case artifact::ElementType::F8E4M3FN:
    return ElementType::F8E4M3FN;
  case artifact::ElementType::F8E4M3FNUZ:
    return ElementType::F8E4M3FNUZ;
  case artifact::ElementType::F8E5M2:
    return ElementType::F8E5M2;
  case artifact::ElementType::F8E5M2FNUZ:
    return ElementType::F8E5M2FNUZ;
  case artifact::ElementType::F8E8M0:
    return ElementType::F8E8M0;
  case artifact::ElementType::F4E2M1:
    return ElementType::F4E2M1;
  case artifact::ElementType::I4:
    return ElementType::I4;
  case artifact::ElementType::U4:
    return ElementType::U4;
  case artifact::ElementType::I2:
    return ElementType::I2;
  case artifact::ElementType::U2:
    return ElementType::U2;
  }
  return std::nullopt;
}

std::optional<layout::ReductionKind> dovetail::runtime::fromSchema(artifact::Reduction value) {
  switch (value) {
  case artifact::Reduction::None:
    return layout::ReductionKind::None;
  case artifact::Reduction::Sum:
    return layout::ReductionKind::Sum;
  case artifact::Reduction::Prod:
    return layout::ReductionKind::Prod;
  case artifact::Reduction::Max:
    return layout::ReductionKind::Max;
  case artifact::Reduction::Min:
    return layout::ReductionKind::Min;
  case artifact::Reduction::Owner:
    return layout::ReductionKind::Owner;
  }
  return std::nullopt;
}

std::optional<BufferKind> dovetail::runtime::fromSchema(artifact::BufferKind value) {
  switch (value) {
  case artifact::BufferKind::Arena:
    return BufferKind::Arena;
  case artifact::BufferKind::Persistent:
    return BufferKind::Persistent;
  case artifact::BufferKind::Constant:
    return BufferKind::Constant;
  }
  return std::nullopt;
}

std::optional<PostOpKind> dovetail::runtime::fromSchema(artifact::PostOpKind value) {
  switch (value) {
  case artifact::PostOpKind::AddTensor:
    return PostOpKind::AddTensor;
  case artifact::PostOpKind::MulTensor:
    return PostOpKind::MulTensor;
  case artifact::PostOpKind::Relu:
    return PostOpKind::Relu;
  case artifact::PostOpKind::LeakyRelu:
    return PostOpKind::LeakyRelu;
  case artifact::PostOpKind::Clip:
    return PostOpKind::Clip;
  case artifact::PostOpKind::Sigmoid:
    return PostOpKind::Sigmoid;
  case artifact::PostOpKind::Tanh:
    return PostOpKind::Tanh;
  case artifact::PostOpKind::Gelu:
    return PostOpKind::Gelu;
  case artifact::PostOpKind::GeluTanh:
    return PostOpKind::GeluTanh;
  case artifact::PostOpKind::HardSwish:
    return PostOpKind::HardSwish;
  case artifact::PostOpKind::Swish:
    return PostOpKind::Swish;
  case artifact::PostOpKind::Elu:
    return PostOpKind::Elu;
  case artifact::PostOpKind::HardSigmoid:
    return PostOpKind::HardSigmoid;
  }
  return std::nullopt;
}

std::optional<PoolKind> dovetail::runtime::fromSchema(artifact::PoolKind value) {
  switch (value) {
  case artifact::PoolKind::Max:
    return PoolKind::Max;
  case artifact::PoolKind::AverageIncludePad:
    return PoolKind::AverageIncludePad;
  case artifact::PoolKind::AverageExcludePad:
    return PoolKind::AverageExcludePad;
  }
  return std::nullopt;
}

std::optional<layout::ExchangeKind> dovetail::runtime::fromSchema(artifact::ExchangeKind value) {
  switch (value) {
  case artifact::ExchangeKind::Messages:
    return layout::ExchangeKind::Messages;
  case artifact::ExchangeKind::AllReduce:
    return layout::ExchangeKind::AllReduce;
  case artifact::ExchangeKind::ReduceScatter:
    return layout::ExchangeKind::ReduceScatter;
  case artifact::ExchangeKind::AllGather:
    return layout::ExchangeKind::AllGather;
  case artifact::ExchangeKind::PackedGather:
    return layout::ExchangeKind::PackedGather;
  }
  return std::nullopt;
}

std::optional<MathMode> dovetail::runtime::fromSchema(artifact::MathMode value) {
  switch (value) {
  case artifact::MathMode::F32:
    return MathMode::F32;
  case artifact::MathMode::TF32:
    return MathMode::TF32;
  case artifact::MathMode::BF16:
    return MathMode::BF16;
  case artifact::MathMode::F32Strict:
    return MathMode::F32Strict;
  }
  return std::nullopt;
}

std::optional<ConvolutionAlgorithm> dovetail::runtime::fromSchema(artifact::ConvolutionAlgorithm value) {
  switch (value) {
  case artifact::ConvolutionAlgorithm::Library:
    return ConvolutionAlgorithm::Library;
  case artifact::ConvolutionAlgorithm::Winograd:
    return ConvolutionAlgorithm::Winograd;
  case artifact::ConvolutionAlgorithm::Gathered:
    return ConvolutionAlgorithm::Gathered;
  }
  return std::nullopt;
}
