//===- PlanEnums.cpp - Enumerations of the plan as the schema's -----------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what each enumeration of the plan dialect is in an artifact.
//
//===----------------------------------------------------------------------===//

#include "PlanEnums.h"

using namespace dovetail;

artifact::BufferKind dovetail::toSchema(plan::BufferKind value) {
  switch (value) {
  case plan::BufferKind::Arena:
    return artifact::BufferKind::Arena;
  case plan::BufferKind::Persistent:
    return artifact::BufferKind::Persistent;
  case plan::BufferKind::Constant:
    return artifact::BufferKind::Constant;
  }
  llvm_unreachable("covered switch");
}

artifact::ExchangeKind dovetail::toSchema(plan::ExchangeKind value) {
  switch (value) {
  case plan::ExchangeKind::Messages:
    return artifact::ExchangeKind::Messages;
  case plan::ExchangeKind::AllReduce:
    return artifact::ExchangeKind::AllReduce;
  case plan::ExchangeKind::ReduceScatter:
    return artifact::ExchangeKind::ReduceScatter;
  case plan::ExchangeKind::AllGather:
    return artifact::ExchangeKind::AllGather;
  case plan::ExchangeKind::PackedGather:
    return artifact::ExchangeKind::PackedGather;
  }
  llvm_unreachable("covered switch");
}

artifact::ConvolutionAlgorithm dovetail::toSchema(plan::ConvolutionAlgorithm value) {
  switch (value) {
  case plan::ConvolutionAlgorithm::Library:
    return artifact::ConvolutionAlgorithm::Library;
  case plan::ConvolutionAlgorithm::Winograd:
    return artifact::ConvolutionAlgorithm::Winograd;
  case plan::ConvolutionAlgorithm::Gathered:
    return artifact::ConvolutionAlgorithm::Gathered;
  }
  llvm_unreachable("covered switch");
}

artifact::MathMode dovetail::toSchema(plan::MathMode value) {
  switch (value) {
  case plan::MathMode::F32:
    return artifact::MathMode::F32;
  case plan::MathMode::TF32:
    return artifact::MathMode::TF32;
  case plan::MathMode::BF16:
    return artifact::MathMode::BF16;
  case plan::MathMode::F32Strict:
    return artifact::MathMode::F32Strict;
  }
  llvm_unreachable("covered switch");
}

artifact::Reduction dovetail::toSchema(ReduceKind value) {
  switch (value) {
  case ReduceKind::Sum:
    return artifact::Reduction::Sum;
  case ReduceKind::Prod:
    return artifact::Reduction::Prod;
  case ReduceKind::Max:
    return artifact::Reduction::Max;
  case ReduceKind::Min:
    return artifact::Reduction::Min;
  case ReduceKind::Owner:
    return artifact::Reduction::Owner;
  }
  llvm_unreachable("covered switch");
}

artifact::PostOpKind dovetail::toSchema(PostOpKind value) {
  switch (value) {
  case PostOpKind::AddTensor:
    return artifact::PostOpKind::AddTensor;
  case PostOpKind::MulTensor:
    return artifact::PostOpKind::MulTensor;
  case PostOpKind::Relu:
    return artifact::PostOpKind::Relu;
  case PostOpKind::LeakyRelu:
    return artifact::PostOpKind::LeakyRelu;
  case PostOpKind::Clip:
    return artifact::PostOpKind::Clip;
  case PostOpKind::Sigmoid:
    return artifact::PostOpKind::Sigmoid;
  case PostOpKind::Tanh:
    return artifact::PostOpKind::Tanh;
  case PostOpKind::Gelu:
    return artifact::PostOpKind::Gelu;
  case PostOpKind::GeluTanh:
    return artifact::PostOpKind::GeluTanh;
  case PostOpKind::HardSwish:
    return artifact::PostOpKind::HardSwish;
  case PostOpKind::Swish:
    return artifact::PostOpKind::Swish;
  case PostOpKind::Elu:
    return artifact::PostOpKind::Elu;
  case PostOpKind::HardSigmoid:
    return artifact::PostOpKind::HardSigmoid;
  }
  llvm_unreachable("covered switch");
}

std::optional<artifact::PoolKind> dovetail::toSchema(PoolKind value) {
  switch (value) {
  case PoolKind::Max:
    return artifact::PoolKind::Max;
  case PoolKind::AverageIncludePad:
    return artifact::PoolKind::AverageIncludePad;
  case PoolKind::AverageExcludePad:
    return artifact::PoolKind::AverageExcludePad;
  case PoolKind::Lp:
    return std::nullopt;
  }
  llvm_unreachable("covered switch");
}
