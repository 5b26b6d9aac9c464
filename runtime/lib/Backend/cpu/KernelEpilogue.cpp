//===- KernelEpilogue.cpp - Epilogues of own kernels ----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelEpilogue.h"

using namespace dovetail;
using namespace dovetail::runtime;

/// The kernels' step for one of oneDNN's; nothing if there is none.
static std::optional<EpilogueStep> stepOf(const dnnl::post_ops &list, int index) {
  if (list.kind(index) == dnnl::primitive::kind::sum)
    return EpilogueStep{EpilogueStep::AddTensor, 0, 0};
  if (list.kind(index) != dnnl::primitive::kind::eltwise)
    return std::nullopt;
  float scale, alpha, beta;
  dnnl::algorithm algorithm;
  list.get_params_eltwise(index, scale, algorithm, alpha, beta);
  switch (algorithm) {
  case dnnl::algorithm::eltwise_relu:
    return EpilogueStep{EpilogueStep::Relu, alpha, 0};
  case dnnl::algorithm::eltwise_clip_v2:
    return EpilogueStep{EpilogueStep::Clip, alpha, beta};
  case dnnl::algorithm::eltwise_linear:
    return EpilogueStep{EpilogueStep::Linear, alpha, beta};
  case dnnl::algorithm::eltwise_hardswish:
    return EpilogueStep{EpilogueStep::HardSwish, 0, 0};
  default:
    return std::nullopt;
  }
}

std::optional<Epilogue> dovetail::runtime::kernelEpilogue(const PostOps::Fused &fused) {
  dnnl::post_ops list = fused.attributes.get_post_ops();
  if (list.len() > Epilogue::maxSteps)
    return std::nullopt;
  Epilogue epilogue;
  for (int i = 0; i < list.len(); ++i) {
    std::optional<EpilogueStep> step = stepOf(list, i);
    if (!step)
      return std::nullopt;
    epilogue.steps[epilogue.numSteps++] = *step;
  }
  return epilogue;
}
