//===- CalibrationPrograms.cpp - What a machine is measured by ------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements the models that calibration compiles and runs.
//
//===----------------------------------------------------------------------===//

#include "CalibrationPrograms.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <optional>

using namespace dovetail;
using llvm::ArrayRef;
using llvm::StringRef;
using llvm::Twine;

namespace {

/// What a library applies to the result of a product.
enum class Epilogue { None, Relu, HardSwish, Gelu };

/// Writes a model whose nodes have nothing to do with each other.
class ModelWriter {
public:
  explicit ModelWriter(StringRef name, bool isHalf = false)
      : name(name), type(isHalf ? "bfloat16" : "float"), isHalf(isHalf) {}

  /// Two-dimensional: `channels` to `results`, all of the same extent.
  void addConvolution(int channels, int extent, int results, int kernel, int stride = 1,
                      Epilogue epilogue = Epilogue::None);
  void addVolumeConvolution(int channels, int extent, int results, int kernel);
  void addDepthwise(int channels, int extent, int kernel, int stride = 1, Epilogue epilogue = Epilogue::None);
  /// Doubles the extent.
  void addDeconvolution(int channels, int extent, int results);
  /// By weights.
  void addMatMul(int rows, int depth, int columns, Epilogue epilogue = Epilogue::None);
  /// Of two values that are computed.
  void addBatchedMatMul(int batch, int rows, int depth, int columns);
  /// Of values between convolutions, whose channels lie innermost.
  void addConcat(int channels, int extent);
  void addStatistics(int channels, int extent);
  /// `x` in the node stands for a value of this shape that a step has just written.
  /// The result has as many columns, unless `columns` says otherwise.
  void addNode(ArrayRef<int> shape, const Twine &node, int columns = 0);
  /// The same with `x` and `z`, of the same shape.
  void addBinary(ArrayRef<int> shape, const Twine &node);

  CalibrationProgram write() const;

private:
  std::string addInput(ArrayRef<int> shape);
  std::string addWeights(ArrayRef<int> shape);
  /// Reads a value with so many columns, or an image where that is nothing.
  void addSink(const Twine &value, std::optional<int> columns);
  /// A node that is measured, with such a result.
  void addResult(const Twine &node, Epilogue epilogue = Epilogue::None, std::optional<int> columns = std::nullopt);
  /// A value that a convolution computes.
  std::string addComputed(int channels, int extent);

  StringRef name, type;
  /// Whether values have 16 bits.
  bool isHalf;
  std::string inputs, outputs, body;
  int number = 0;
};

} // namespace

static std::string list(ArrayRef<int> numbers) {
  return llvm::join(llvm::map_range(numbers, [](int number) { return std::to_string(number); }), ", ");
}

/// Of all that is no image.
static std::optional<int> getColumns(ArrayRef<int> shape) {
  return shape.size() <= 3 ? std::optional(shape.back()) : std::nullopt;
}

std::string ModelWriter::addInput(ArrayRef<int> shape) {
  std::string id = std::to_string(++number);
  inputs += (inputs.empty() ? "" : ", ") + (type + "[" + list(shape) + "] i" + id).str();
  body += ("  [" + Twine(kAsidePrefix) + id + "] x" + id + " = LeakyRelu (i" + id + ")\n").str();
  // With two users it is stored, and not computed where it is read.
  addSink("x" + id, getColumns(shape));
  return "x" + id;
}

void ModelWriter::addSink(const Twine &value, std::optional<int> columns) {
  std::string id = std::to_string(++number);
  // Neither becomes part of what computes the value, nor that part of them. Images have channels innermost.
  std::string node = ("GlobalMaxPool (" + value + ")").str();
  if (columns)
    node = ("MatMul (" + value + ", " + addWeights({*columns, 1}) + ")").str();
  outputs += (outputs.empty() ? "" : ", ") + (type + "[] o" + id).str();
  body += ("  [" + Twine(kAsidePrefix) + id + "] o" + id + " = " + node + "\n").str();
}

std::string ModelWriter::addWeights(ArrayRef<int> shape) {
  std::string id = std::to_string(++number);
  body += "  s" + id + " = Constant <value_ints = [" + list(shape) + "]> ()\n";
  std::string full = isHalf ? "f" + id : "w" + id;
  body += "  " + full + " = ConstantOfShape <value = float[1] {0.01}> (s" + id + ")\n";
  if (isHalf)
    body += "  w" + id + " = Cast <to = 16> (" + full + ")\n";
  return "w" + id;
}

void ModelWriter::addResult(const Twine &node, Epilogue epilogue, std::optional<int> columns) {
  std::string id = std::to_string(++number);
  std::string result = epilogue == Epilogue::None ? "y" + id : "p" + id;
  body += ("  [" + name + id + "] " + result + " = " + node + "\n").str();
  switch (epilogue) {
  case Epilogue::None:
    break;
  case Epilogue::Relu:
    body += "  y" + id + " = Relu (" + result + ")\n";
    break;
  case Epilogue::HardSwish:
    body += "  y" + id + " = HardSwish (" + result + ")\n";
    break;
  case Epilogue::Gelu:
    body += "  y" + id + " = Gelu (" + result + ")\n";
    break;
  }
  addSink("y" + id, columns);
}

void ModelWriter::addConvolution(int channels, int extent, int results, int kernel, int stride, Epilogue epilogue) {
  std::string x = addInput({1, channels, extent, extent}), w = addWeights({results, channels, kernel, kernel});
  std::string bias = addWeights({results});
  int pad = kernel / 2;
  addResult("Conv <strides = [" + list({stride, stride}) + "], pads = [" + list({pad, pad, pad, pad}) + "]> (" + x +
                ", " + w + ", " + bias + ")",
            epilogue);
}

void ModelWriter::addVolumeConvolution(int channels, int extent, int results, int kernel) {
  std::string x = addInput({1, channels, extent, extent, extent});
  std::string w = addWeights({results, channels, kernel, kernel, kernel});
  int pad = kernel / 2;
  addResult("Conv <pads = [" + list({pad, pad, pad, pad, pad, pad}) + "]> (" + x + ", " + w + ")");
}

void ModelWriter::addDepthwise(int channels, int extent, int kernel, int stride, Epilogue epilogue) {
  std::string x = addInput({1, channels, extent, extent}), w = addWeights({channels, 1, kernel, kernel});
  std::string bias = addWeights({channels});
  int pad = kernel / 2;
  addResult("Conv <group = " + Twine(channels) + ", strides = [" + list({stride, stride}) + "], pads = [" +
                list({pad, pad, pad, pad}) + "]> (" + x + ", " + w + ", " + bias + ")",
            epilogue);
}

void ModelWriter::addDeconvolution(int channels, int extent, int results) {
  std::string x = addInput({1, channels, extent, extent}), w = addWeights({channels, results, 2, 2});
  addResult("ConvTranspose <strides = [2, 2]> (" + x + ", " + w + ")");
}

void ModelWriter::addMatMul(int rows, int depth, int columns, Epilogue epilogue) {
  std::string x = addInput({rows, depth}), w = addWeights({depth, columns});
  addResult("MatMul (" + x + ", " + w + ")", epilogue, columns);
}

void ModelWriter::addBatchedMatMul(int batch, int rows, int depth, int columns) {
  std::string a = addInput({batch, rows, depth}), b = addInput({batch, depth, columns});
  addResult("MatMul (" + a + ", " + b + ")", Epilogue::None, columns);
}

std::string ModelWriter::addComputed(int channels, int extent) {
  std::string x = addInput({1, channels, extent, extent}), w = addWeights({channels, channels, 1, 1});
  std::string id = std::to_string(++number);
  body += ("  [" + name + id + "] c" + id + " = Conv (" + x + ", " + w + ")\n").str();
  return "c" + id;
}

void ModelWriter::addConcat(int channels, int extent) {
  std::string a = addComputed(channels, extent), b = addComputed(channels, extent);
  std::string id = std::to_string(++number), w = addWeights({channels, 2 * channels, 1, 1});
  body += ("  [" + name + id + "] j" + id + " = Concat <axis = 1> (" + a + ", " + b + ")\n").str();
  addResult("Conv (j" + Twine(id) + ", " + w + ")");
}

void ModelWriter::addStatistics(int channels, int extent) {
  std::string x = addComputed(channels, extent);
  addResult("GlobalAveragePool (" + x + ")");
}

void ModelWriter::addNode(ArrayRef<int> shape, const Twine &node, int columns) {
  std::string x = addInput(shape), text = node.str();
  text.replace(text.find("(x") + 1, 1, x);
  addResult(text, Epilogue::None, columns ? columns : getColumns(shape));
}

void ModelWriter::addBinary(ArrayRef<int> shape, const Twine &node) {
  std::string z = addInput(shape), text = node.str();
  text.replace(text.find("z)"), 1, z);
  addNode(shape, text);
}

CalibrationProgram ModelWriter::write() const {
  std::string head =
      ("<ir_version: 8, opset_import: [\"\" : 20]>\n" + name + " (" + inputs + ") => (" + outputs + ")\n").str();
  // Nodes may name the last axis.
  return {name.str(), head + "{\n  last = Constant <value_ints = [-1]> ()\n" + body + "}\n"};
}

std::vector<CalibrationProgram> dovetail::getStepPrograms() {
  std::vector<CalibrationProgram> programs;
  ModelWriter wide("wide");
  wide.addConvolution(3, 224, 64, 7, 2, Epilogue::Relu);
  wide.addConvolution(64, 56, 64, 3, 1, Epilogue::Relu);
  wide.addConvolution(64, 56, 256, 1);
  wide.addConvolution(256, 56, 64, 1, 1, Epilogue::Relu);
  wide.addConvolution(128, 28, 128, 3, 1, Epilogue::Relu);
  wide.addConvolution(512, 28, 128, 1);
  wide.addConvolution(256, 56, 512, 1, 2);
  wide.addConvolution(256, 14, 256, 3);
  wide.addConvolution(256, 14, 1024, 1, 1, Epilogue::Relu);
  wide.addConvolution(512, 7, 512, 3);
  wide.addConvolution(2048, 7, 512, 1, 1, Epilogue::Relu);
  wide.addConvolution(192, 48, 192, 1, 1, Epilogue::HardSwish);
  programs.push_back(wide.write());

  ModelWriter narrow("narrow");
  narrow.addConvolution(3, 320, 16, 3, 2);
  narrow.addConvolution(16, 256, 16, 3, 1, Epilogue::Relu);
  narrow.addConvolution(32, 160, 32, 3, 1, Epilogue::Relu);
  narrow.addConvolution(16, 320, 32, 1, 1, Epilogue::HardSwish);
  narrow.addConvolution(32, 200, 48, 1, 1, Epilogue::HardSwish);
  narrow.addConvolution(96, 96, 24, 3, 1, Epilogue::Relu);
  narrow.addConvolution(24, 160, 96, 1);
  narrow.addConvolution(48, 160, 12, 1);
  narrow.addConvolution(16, 320, 2, 1);
  narrow.addConvolution(40, 96, 40, 3, 2);
  programs.push_back(narrow.write());

  ModelWriter depthwise("depthwise");
  depthwise.addDepthwise(16, 480, 3, 1, Epilogue::HardSwish);
  depthwise.addDepthwise(32, 384, 3, 2);
  depthwise.addDepthwise(48, 160, 3);
  depthwise.addDepthwise(96, 80, 3, 1, Epilogue::HardSwish);
  depthwise.addDepthwise(192, 48, 5, 1, Epilogue::HardSwish);
  depthwise.addDepthwise(384, 28, 5);
  depthwise.addDepthwise(24, 56, 7);
  depthwise.addDepthwise(96, 28, 7);
  depthwise.addDepthwise(384, 14, 7);
  programs.push_back(depthwise.write());

  ModelWriter volumes("volumes");
  volumes.addVolumeConvolution(2, 40, 8, 3);
  volumes.addVolumeConvolution(8, 40, 8, 3);
  volumes.addVolumeConvolution(16, 32, 16, 3);
  volumes.addVolumeConvolution(32, 16, 32, 3);
  volumes.addVolumeConvolution(8, 48, 3, 1);
  volumes.addDeconvolution(128, 64, 64);
  volumes.addDeconvolution(64, 96, 32);
  volumes.addDeconvolution(32, 160, 16);
  programs.push_back(volumes.write());

  ModelWriter matrices("matrices");
  matrices.addMatMul(512, 512, 512);
  matrices.addMatMul(197, 192, 576);
  matrices.addMatMul(197, 192, 768, Epilogue::Gelu);
  matrices.addMatMul(197, 768, 192);
  matrices.addMatMul(100, 64, 256);
  matrices.addMatMul(25, 64, 64);
  matrices.addMatMul(8, 16, 16);
  matrices.addMatMul(1, 64, 16);
  matrices.addMatMul(16, 512, 512);
  matrices.addMatMul(4, 1024, 1024);
  matrices.addMatMul(1, 2048, 1000);
  matrices.addMatMul(3136, 48, 144);
  matrices.addMatMul(3136, 24, 96, Epilogue::Gelu);
  matrices.addMatMul(784, 192, 48);
  matrices.addBatchedMatMul(12, 197, 64, 197);
  matrices.addBatchedMatMul(12, 197, 197, 64);
  matrices.addBatchedMatMul(128, 49, 16, 49);
  matrices.addBatchedMatMul(128, 49, 49, 16);
  matrices.addBatchedMatMul(4, 100, 16, 100);
  programs.push_back(matrices.write());

  // A machine that has no such products computes them in 32 bits.
  ModelWriter halves("halves", /*isHalf=*/true);
  halves.addConvolution(64, 56, 64, 3, 1, Epilogue::Relu);
  halves.addConvolution(256, 14, 1024, 1);
  halves.addMatMul(512, 512, 512);
  halves.addMatMul(197, 192, 768);
  halves.addMatMul(784, 96, 96);
  programs.push_back(halves.write());

  ModelWriter kernels("kernels");
  for (int rows : {16, 256, 1024, 4096, 16384})
    kernels.addBinary({rows, 512}, "Add (x, z)");
  for (int extent : {4, 16, 64, 128})
    kernels.addBinary({extent, extent}, "Mul (x, z)");
  kernels.addNode({8, 8}, "Sigmoid (x)");
  kernels.addNode({256, 512}, "Sigmoid (x)");
  kernels.addNode({1024, 512}, "Tanh (x)");
  kernels.addNode({3, 197, 197}, "Softmax <axis = -1> (x)");
  kernels.addNode({8, 100, 100}, "Softmax <axis = -1> (x)");
  kernels.addNode({192, 49, 49}, "Softmax <axis = -1> (x)");
  kernels.addNode({784, 96}, "ReduceMean <keepdims = 1> (x, last)", 1);
  kernels.addNode({100, 192}, "ReduceMean <keepdims = 1> (x, last)", 1);
  for (int rows : {64, 512, 2048})
    kernels.addNode({rows, 192}, "Relu (x)");
  kernels.addNode({4096, 2048}, "LeakyRelu (x)");
  programs.push_back(kernels.write());

  ModelWriter copies("copies");
  copies.addConcat(16, 384);
  copies.addConcat(32, 192);
  copies.addConcat(64, 96);
  copies.addConcat(64, 32);
  copies.addStatistics(24, 160);
  copies.addStatistics(64, 96);
  copies.addStatistics(256, 28);
  for (int extent : {32, 96, 192}) {
    copies.addNode({1, 32, extent, extent}, "MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)");
  }
  copies.addNode({197, 3, 64}, "Transpose <perm = [1, 0, 2]> (x)");
  copies.addNode({64, 56, 96}, "Transpose <perm = [1, 0, 2]> (x)");
  copies.addNode({256, 1024}, "Transpose <perm = [1, 0]> (x)", 256);
  programs.push_back(copies.write());
  return programs;
}

/// Of the values that are exchanged, 512 numbers each.
static constexpr int kExchangedRows[] = {256, 4, 8, 32, 64, 256, 1024, 4096, 8};

std::vector<CalibrationProgram> dovetail::getExchangePrograms(int numRanks) {
  std::string mesh = "a=" + std::to_string(numRanks);
  // What is split by rows is to be split by columns, by all ranks with all.
  std::vector<CalibrationProgram> programs;
  for (bool isGathered : {false, true}) {
    std::string inputs, outputs, body;
    std::vector<std::string> options = {"--mesh", mesh};
    for (auto [i, rows] : llvm::enumerate(kExchangedRows)) {
      std::string id = std::to_string(i), shape = "float[" + std::to_string(rows) + ", 512] ";
      inputs += (i ? ", " : "") + shape + "x" + id;
      outputs += (i ? ", " : "") + shape + "y" + id;
      body += "  y" + id + " = LeakyRelu (x" + id + ")\n";
      options.insert(options.end(),
                     {"--shard", "x" + id + "=a,_", "--shard", "y" + id + (isGathered ? "=_,_" : "=_,a")});
    }
    programs.push_back({isGathered ? "gather" : "redistribute",
                        "<ir_version: 8, opset_import: [\"\" : 20]>\nexchanges (" + inputs + ") => (" + outputs +
                            ")\n{\n" + body + "}\n",
                        options});
  }
  return programs;
}
