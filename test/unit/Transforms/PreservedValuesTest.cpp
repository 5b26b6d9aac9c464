//===- PreservedValuesTest.cpp - Simplified graphs compute the same -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Evaluates every function of the examples in test/Transforms on random numbers, before and after its pass and before
// and after all passes, and compares the results.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Evaluation/Evaluate.h"
#include "dovetail/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <regex>
#include <set>

using namespace mlir;
using namespace dovetail;

namespace {

/// A file, and the pipeline that its RUN line names.
struct Example {
  std::filesystem::path file;
  std::string pipeline;
};

void PrintTo(const Example &example, std::ostream *os) { *os << example.file.filename().string(); }

/// Of passes that change operations: folding is how values are compared, and checking indices changes nothing.
std::vector<Example> findExamples() {
  std::vector<Example> examples;
  const std::set<std::string> others = {"dovetail-fold-constants", "dovetail-check-indices"};
  const std::regex run("// RUN: .*--(dovetail-[a-z-]+)");
  for (const auto &entry : std::filesystem::directory_iterator(DOVETAIL_TRANSFORMS_EXAMPLES)) {
    std::ifstream stream(entry.path());
    std::string line;
    std::smatch match;
    if (std::getline(stream, line) && std::regex_search(line, match, run) && !others.contains(match[1]) &&
        entry.path().stem() != "invalid" && entry.path().stem() != "expand_norms")
      examples.push_back({entry.path(), match[1]});
  }
  return examples;
}

/// Random elements; with `special`, some of them are zeros of both signs, infinities and NaN.
DenseElementsAttr makeRandom(RankedTensorType type, std::mt19937 &random, bool special) {
  SmallVector<Attribute> elements;
  constexpr double specials[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1e30, -1e30};
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    bool isSpecial = special && random() % 3 == 0;
    double number =
        isSpecial ? specials[random() % std::size(specials)] : std::uniform_real_distribution<double>(-8, 8)(random);
    if (isa<FloatType>(type.getElementType()))
      elements.push_back(FloatAttr::get(type.getElementType(), number));
    else
      elements.push_back(
          IntegerAttr::get(type.getElementType(), APInt(type.getElementTypeBitWidth(), random(), /*isSigned=*/false,
                                                        /*implicitTrunc=*/true)));
  }
  return DenseElementsAttr::get(type, elements);
}

/// The results of a function on constants, one operation after the other; none if an operation does not evaluate.
std::optional<std::vector<DenseElementsAttr>> run(func::FuncOp function, ArrayRef<DenseElementsAttr> inputs) {
  DenseMap<Value, Attribute> values;
  for (auto [argument, input] : llvm::zip_equal(function.getArguments(), inputs))
    values[argument] = input;
  for (Operation &op : function.getBody().front().without_terminator()) {
    if (auto constant = dyn_cast<ConstantOp>(op)) {
      values[constant] = constant.getValue();
      continue;
    }
    SmallVector<Attribute> operands =
        llvm::map_to_vector(op.getOperands(), [&](Value operand) { return values.lookup(operand); });
    FailureOr<SmallVector<DenseElementsAttr>> results = evaluate(&op, operands);
    if (failed(results))
      return std::nullopt;
    for (auto [result, value] : llvm::zip_equal(op.getResults(), *results))
      values[result] = value;
  }
  std::vector<DenseElementsAttr> results;
  for (Value result : function.getBody().front().getTerminator()->getOperands())
    results.push_back(cast<DenseElementsAttr>(values.lookup(result)));
  return results;
}

/// Equal, but for what rounding in another order may change.
void expectClose(DenseElementsAttr before, DenseElementsAttr after) {
  ASSERT_EQ(before.getType(), after.getType());
  if (!isa<FloatType>(before.getElementType())) {
    EXPECT_EQ(before, after);
    return;
  }
  double magnitude = 0;
  for (const APFloat &number : before.getValues<APFloat>())
    if (number.isFinite())
      magnitude = std::max(magnitude, std::abs(number.convertToDouble()));
  for (auto [a, b] : llvm::zip_equal(before.getValues<APFloat>(), after.getValues<APFloat>())) {
    if (!a.isFinite()) {
      EXPECT_TRUE(a.isNaN() ? b.isNaN() : a.bitwiseIsEqual(b))
          << a.convertToDouble() << " became " << b.convertToDouble();
      continue;
    }
    EXPECT_NEAR(a.convertToDouble(), b.convertToDouble(), magnitude * 4e-6);
  }
}

class PreservedValuesTest : public testing::TestWithParam<Example> {
protected:
  static void SetUpTestSuite() {
    registerDovetailTransformsPasses();
    registerGraphPipelines();
  }

  void check(StringRef pipeline) {
    MLIRContext context;
    context.loadDialect<DovetailDialect, func::FuncDialect>();
    auto before = parseSourceFile<ModuleOp>(GetParam().file.string(), &context);
    ASSERT_TRUE(before);
    OwningOpRef<ModuleOp> after = before->clone();
    PassManager passes(&context);
    ASSERT_TRUE(succeeded(parsePassPipeline(pipeline, passes)));
    ASSERT_TRUE(succeeded(passes.run(*after)));
    // Norms are what they are expanded to.
    PassManager expansion(&context);
    expansion.addPass(createExpandNorms());
    ASSERT_TRUE(succeeded(expansion.run(*before)) && succeeded(expansion.run(*after)));

    size_t count = 0;
    for (auto [a, b] : llvm::zip_equal(before->getOps<func::FuncOp>(), after->getOps<func::FuncOp>())) {
      // Operations are evaluated element by element: of large ones one case without and one with special values, and
      // all in `make verify-all`.
      int64_t elements = 0;
      for (Type type : a.getArgumentTypes())
        elements += cast<RankedTensorType>(type).getNumElements();
      for (unsigned seed = 0, end = elements > 1000 && !std::getenv("DOVETAIL_ALL") ? 2 : 12; seed < end; ++seed) {
        SCOPED_TRACE("function @" + a.getName().str() + ", seed " + std::to_string(seed));
        std::mt19937 random(seed);
        // LLVM does not evaluate every function of NaN and infinities.
        bool special = seed % 2 == 1;
        SmallVector<DenseElementsAttr> inputs;
        for (Type type : a.getArgumentTypes())
          inputs.push_back(makeRandom(cast<RankedTensorType>(type), random, special));
        auto expected = run(a, inputs), actual = run(b, inputs);
        if (special && !(expected && actual))
          continue;
        ASSERT_TRUE(expected && actual);
        ASSERT_EQ(expected->size(), actual->size());
        for (auto [x, y] : llvm::zip_equal(*expected, *actual))
          expectClose(x, y);
        if (HasFailure())
          return;
      }
      ++count;
    }
    EXPECT_GT(count, 0u);
  }
};

TEST_P(PreservedValuesTest, ByItsPass) { check(GetParam().pipeline); }
TEST_P(PreservedValuesTest, ByAllPasses) { check("dovetail-simplify,dovetail-legalize"); }

INSTANTIATE_TEST_SUITE_P(Examples, PreservedValuesTest, testing::ValuesIn(findExamples()),
                         [](const testing::TestParamInfo<Example> &info) { return info.param.file.stem().string(); });

} // namespace
