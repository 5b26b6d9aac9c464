//===- Expansion.cpp - Operators that consist of ONNX's -------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements Expansion and the registry of expansions.
//
//===----------------------------------------------------------------------===//

#include "Expansion.h"

#include "ModelFile.h"
#include "OnnxNode.h"
#include "TensorData.h"
#include "onnx/defs/attr_proto_util.h"
#include "llvm/ADT/Sequence.h"

#include <map>

using namespace dovetail;
using namespace dovetail::importer;

//===----------------------------------------------------------------------===//
// Registry
//===----------------------------------------------------------------------===//

using Key = std::pair<std::string, std::string>;

/// Filled while static variables are initialised, and only read afterwards.
static std::map<Key, ExpandFn> &getFunctions() {
  static std::map<Key, ExpandFn> functions;
  return functions;
}

OperatorExpansion::OperatorExpansion(llvm::StringRef domain, llvm::StringRef opType, ExpandFn expand) {
  [[maybe_unused]] bool inserted = getFunctions().try_emplace({domain.str(), opType.str()}, expand).second;
  assert(inserted && "two expansions of one operator");
}

static std::map<Key, ExpansionEntry> readSignatures() {
  std::map<Key, ExpansionEntry> entries;
#define OPERATOR(domain, name, version)                                                                                \
  {                                                                                                                    \
    onnx::OpSchema schema(name, "Signatures.inc", 0);                                                                  \
    schema.SetDomain(domain).SinceVersion(version);                                                                    \
    int numInputs = 0, numOutputs = 0;
#define ATTRIBUTE(name, type, required) schema.Attr(name, "", onnx::AttributeProto::type, required);
#define INT(name, value) schema.Attr(name, "", onnx::AttributeProto::INT, static_cast<int64_t>(value));
#define FLOAT(name, value) schema.Attr(name, "", onnx::AttributeProto::FLOAT, static_cast<float>(value));
#define STRING(name, value) schema.Attr(name, "", onnx::AttributeProto::STRING, std::string(value));
#define INTS(name, ...) schema.Attr(name, "", onnx::AttributeProto::INTS, std::vector<int64_t>{__VA_ARGS__});
#define INPUT(name, type, option, isHomogeneous)                                                                       \
  schema.Input(numInputs++, name, "", type, onnx::OpSchema::option, isHomogeneous);
#define OUTPUT(name, type, option, isHomogeneous)                                                                      \
  schema.Output(numOutputs++, name, "", type, onnx::OpSchema::option, isHomogeneous);
#define TYPES(name, ...) schema.TypeConstraint(name, {__VA_ARGS__}, "");
#define END                                                                                                            \
  schema.Finalize();                                                                                                   \
  Key key(schema.domain(), schema.Name());                                                                             \
  if (auto it = getFunctions().find(key); it != getFunctions().end())                                                  \
    entries.try_emplace(key, ExpansionEntry{std::move(schema), it->second});                                           \
  }
#include "Expansions/Signatures.inc"
#undef OPERATOR
#undef ATTRIBUTE
#undef INT
#undef FLOAT
#undef STRING
#undef INTS
#undef INPUT
#undef OUTPUT
#undef TYPES
#undef END
  assert(entries.size() == getFunctions().size() && "run scripts/contributed-operators");
  return entries;
}

static const std::map<Key, ExpansionEntry> &getExpansions() {
  static const std::map<Key, ExpansionEntry> entries = readSignatures();
  return entries;
}

const ExpansionEntry *dovetail::importer::lookupExpansion(llvm::StringRef domain, llvm::StringRef opType) {
  auto it = getExpansions().find({domain.str(), opType.str()});
  return it == getExpansions().end() ? nullptr : &it->second;
}

std::vector<const ExpansionEntry *> dovetail::importer::listExpansions() {
  std::vector<const ExpansionEntry *> entries;
  for (const auto &[key, entry] : getExpansions())
    entries.push_back(&entry);
  return entries;
}

int64_t dovetail::importer::getNewestVersion(llvm::StringRef domain) {
  int64_t newest = 0;
  for (const auto &[key, entry] : getExpansions())
    if (key.first == domain)
      newest = std::max<int64_t>(newest, entry.schema.SinceVersion());
  return newest;
}

//===----------------------------------------------------------------------===//
// The node
//===----------------------------------------------------------------------===//

Expansion::Expansion(const onnx::NodeProto &node, const onnx::OpSchema &schema, llvm::ArrayRef<Binding> inputs,
                     const Bounds &bounds, mlir::MLIRContext *context)
    : node(node), schema(schema), inputs(inputs), bounds(bounds), context(context) {
  function.set_name(schema.Name());
  function.set_domain(schema.domain());
  function.add_opset_import()->set_version(kMaxOpset);
  for (size_t index = 0; index < std::max(inputs.size(), schema.inputs().size()); ++index)
    function.add_input(getOperandName(schema, index));
  for (const auto &formal : schema.outputs())
    function.add_output(formal.GetName());
}

std::string Expansion::getOperandName(const onnx::OpSchema &schema, size_t index) {
  // Operands of a variadic one are numbered.
  size_t last = schema.inputs().size() - 1;
  const auto &formal = schema.inputs()[std::min(index, last)];
  if (formal.GetOption() != onnx::OpSchema::Variadic)
    return formal.GetName();
  return formal.GetName() + "_" + std::to_string(index - last);
}

mlir::Value Expansion::getValue(llvm::StringRef operand) const {
  for (auto [index, input] : llvm::enumerate(inputs))
    if (function.input(static_cast<int>(index)) == operand)
      return input.value;
  return {};
}

bool Expansion::hasResult(llvm::StringRef name) const {
  for (auto [output, formal] : llvm::zip(node.output(), schema.outputs()))
    if (formal.GetName() == name)
      return !output.empty();
  return false;
}

mlir::RankedTensorType Expansion::getType(llvm::StringRef operand) const {
  return OnnxNode::getType(getValue(operand));
}

bool Expansion::isBounded(llvm::StringRef operand, unsigned dim) const {
  llvm::ArrayRef<mlir::Value> counts = bounds.get(getValue(operand));
  return !counts.empty() && counts[dim];
}

bool Expansion::isSameExtent(llvm::StringRef operand, unsigned dim, llvm::StringRef other, unsigned otherDim) const {
  auto getCount = [&](llvm::StringRef name, unsigned dim) {
    llvm::ArrayRef<mlir::Value> counts = bounds.get(getValue(name));
    return counts.empty() ? mlir::Value() : counts[dim];
  };
  return getShape(operand)[dim] == getShape(other)[otherDim] && getCount(operand, dim) == getCount(other, otherDim);
}

mlir::ElementsAttr Expansion::getConstant(llvm::StringRef operand) const {
  mlir::Value value = getValue(operand);
  return value ? OnnxNode::getConstant(value) : mlir::ElementsAttr();
}

const onnx::AttributeProto *Expansion::getAttr(llvm::StringRef name) const {
  for (const onnx::AttributeProto &attribute : node.attribute())
    if (attribute.name() == name)
      return &attribute;
  auto it = schema.attributes().find(name.str());
  return it != schema.attributes().end() && it->second.default_value.has_name() ? &it->second.default_value : nullptr;
}

int64_t Expansion::getInt(llvm::StringRef name) const {
  const onnx::AttributeProto *attribute = getAttr(name);
  return attribute ? attribute->i() : 0;
}

double Expansion::getFloat(llvm::StringRef name) const {
  const onnx::AttributeProto *attribute = getAttr(name);
  return attribute ? attribute->f() : 0;
}

llvm::StringRef Expansion::getString(llvm::StringRef name) const {
  const onnx::AttributeProto *attribute = getAttr(name);
  return attribute ? llvm::StringRef(attribute->s()) : llvm::StringRef();
}

llvm::SmallVector<int64_t> Expansion::getInts(llvm::StringRef name) const {
  const onnx::AttributeProto *attribute = getAttr(name);
  return attribute ? llvm::SmallVector<int64_t>(attribute->ints().begin(), attribute->ints().end())
                   : llvm::SmallVector<int64_t>();
}

llvm::SmallVector<double> Expansion::getFloats(llvm::StringRef name) const {
  const onnx::AttributeProto *attribute = getAttr(name);
  return attribute ? llvm::SmallVector<double>(attribute->floats().begin(), attribute->floats().end())
                   : llvm::SmallVector<double>();
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

Expansion::Attr::Attr(llvm::StringRef name, int64_t value) : proto(onnx::MakeAttribute(name.str(), value)) {}
Expansion::Attr::Attr(llvm::StringRef name, double value)
    : proto(onnx::MakeAttribute(name.str(), static_cast<float>(value))) {}
Expansion::Attr::Attr(llvm::StringRef name, llvm::StringRef value)
    : proto(onnx::MakeAttribute(name.str(), value.str())) {}
Expansion::Attr::Attr(llvm::StringRef name, llvm::ArrayRef<int64_t> values)
    : proto(onnx::MakeAttribute(name.str(), values.vec())) {}

llvm::SmallVector<std::string> Expansion::addMany(llvm::StringRef opType, unsigned numResults,
                                                  llvm::ArrayRef<std::string> operands,
                                                  llvm::ArrayRef<Attr> attributes) {
  onnx::NodeProto &added = *function.add_node();
  added.set_op_type(opType.str());
  for (const std::string &operand : operands)
    added.add_input(operand);
  for (const Attr &attribute : attributes)
    *added.add_attribute() = attribute.proto;
  llvm::SmallVector<std::string> results;
  for (unsigned result = 0; result < numResults; ++result) {
    results.push_back(opType.lower() + "_" + std::to_string(numNames++));
    added.add_output(results.back());
  }
  return results;
}

std::string Expansion::add(llvm::StringRef opType, llvm::ArrayRef<std::string> operands,
                           llvm::ArrayRef<Attr> attributes) {
  return addMany(opType, 1, operands, attributes).front();
}

std::string Expansion::constant(mlir::ElementsAttr value) {
  constants.push_back({"constant_" + std::to_string(numNames++), value});
  return constants.back().name;
}

std::string Expansion::packedConstant(mlir::ElementsAttr bytes, mlir::RankedTensorType type) {
  int64_t perByte = 8 / type.getElementTypeBitWidth();
  if (isSmallConstant(type))
    return constant(unpackRows(bytes, type));
  llvm::SmallVector<int64_t> shape(type.getShape());
  shape.back() = llvm::divideCeil(shape.back(), perByte);
  std::string name = constant(cutRows(bytes, shape));
  if (perByte > 1)
    constants.back().packedType = type;
  return name;
}

std::string Expansion::ints(llvm::ArrayRef<int64_t> values) {
  auto type = mlir::RankedTensorType::get(static_cast<int64_t>(values.size()), mlir::IntegerType::get(context, 64));
  return constant(mlir::DenseElementsAttr::get(type, values));
}

std::string Expansion::scalar(double value, mlir::Type elementType) {
  mlir::TypedAttr attribute;
  if (auto type = llvm::dyn_cast<mlir::IntegerType>(elementType))
    attribute = mlir::IntegerAttr::get(type, static_cast<int64_t>(value));
  else
    attribute = mlir::FloatAttr::get(elementType, value);
  return constant(mlir::DenseElementsAttr::get(mlir::RankedTensorType::get({}, elementType),
                                               static_cast<mlir::Attribute>(attribute)));
}

std::string Expansion::moveChannels(const std::string &value, int64_t rank, bool toFront) {
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (toFront)
    std::rotate(order.begin() + 1, order.end() - 1, order.end());
  else
    std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return add("Transpose", {value}, {{"perm", order}});
}

std::string Expansion::cast(const std::string &value, mlir::Type elementType) {
  return add("Cast", {value}, {{"to", static_cast<int64_t>(convertElementType(elementType))}});
}

void Expansion::setResult(llvm::StringRef name, llvm::StringRef value) {
  for (auto [index, formal] : llvm::enumerate(schema.outputs()))
    if (formal.GetName() == name)
      function.set_output(static_cast<int>(index), value.str());
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

llvm::LogicalResult Expansion::unsupported(const llvm::Twine &reason, const llvm::Twine &remedy) {
  obstacle = Obstacle{reason.str(), remedy.str()};
  return llvm::failure();
}

llvm::LogicalResult Expansion::invalid(const llvm::Twine &message) {
  invalidMessage = message.str();
  return llvm::failure();
}
