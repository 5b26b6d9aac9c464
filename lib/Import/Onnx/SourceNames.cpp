//===- SourceNames.cpp - What users wrote where a node comes from ---------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements how metadata of nodes are read. There are those of PyTorch's exporter (`torch.onnx.export(dynamo=True)`)
// and of jax2onnx. Viewers of models group nodes by the key `namespace`. Metadata that are not as expected are ignored.
//
//===----------------------------------------------------------------------===//

#include "SourceNames.h"

#include "dovetail/Text/SourceName.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

using namespace dovetail;
using namespace dovetail::importer;
using llvm::StringRef;

/// More bytes than any honest value has.
static constexpr size_t kMaxValue = 1 << 18;

/// Keys of what is left of the metadata of a node.
static constexpr llvm::StringLiteral kNameKey = "name", kFileKey = "file", kLineKey = "line";

/// The value of `key` in the metadata of a node; empty if there is none, or one that is too long.
static StringRef getValue(const onnx::NodeProto &node, StringRef key) {
  for (const onnx::StringStringEntryProto &entry : node.metadata_props())
    if (entry.key() == key)
      return entry.value().size() <= kMaxValue ? StringRef(entry.value()) : StringRef();
  return {};
}

/// The strings of a list as Python prints it: `['', 'body', "it's"]`. Empty if the text is none. Escapes of characters
/// stay escapes.
static llvm::SmallVector<std::string> parseList(StringRef text) {
  llvm::SmallVector<std::string> strings;
  if (!text.consume_front("[") || !text.consume_back("]"))
    return {};
  for (text = text.trim(' '); !text.empty(); text = text.ltrim(' ')) {
    char quote = text.front();
    if (quote != '\'' && quote != '"')
      return {};
    std::string &string = strings.emplace_back();
    size_t at = 1;
    for (; at < text.size() && text[at] != quote; ++at) {
      bool isEscaped = text[at] == '\\' && at + 1 < text.size() && StringRef("\\'\"").contains(text[at + 1]);
      string += text[isEscaped ? ++at : at];
    }
    if (at >= text.size())
      return {};
    text = text.drop_front(at + 1).ltrim(' ');
    if (!text.empty() && !text.consume_front(","))
      return {};
  }
  return strings;
}

/// The parts of `: net.Net/body: torch.nn.Sequential/conv2d: aten.conv2d.default`: names, and classes of these.
static std::pair<llvm::SmallVector<std::string>, llvm::SmallVector<std::string>> parseNamespace(StringRef text) {
  llvm::SmallVector<std::string> names, classes;
  for (StringRef part : llvm::split(text, '/')) {
    auto [name, type] = part.split(": ");
    names.push_back(name.str());
    classes.push_back(type.str());
  }
  return {std::move(names), std::move(classes)};
}

/// `conv2d` of `aten.conv2d.default`, `Conv2d` of `torch.nn.modules.conv.Conv2d`.
static StringRef getBaseName(StringRef type, bool isOperator) {
  StringRef base = isOperator ? type.rsplit('.').first : type;
  return base.contains('.') ? base.rsplit('.').second : base;
}

/// `conv2d` of `conv2d_12`: numbers of the exporter's nodes change with each export.
static StringRef dropNumber(StringRef name) {
  StringRef base = name.rtrim("0123456789");
  return base.size() < name.size() && base.size() > 1 && base.consume_back("_") ? base : name;
}

/// Whether the class of a module says what an operator is: `Conv2d` and `conv2d`, `BatchNorm2d` and `batch_norm`.
static bool isSaidBy(StringRef type, StringRef op) {
  auto fold = [](StringRef text) {
    std::string folded = text.lower();
    llvm::erase(folded, '_');
    return folded;
  };
  std::string a = fold(type), b = fold(op);
  return !b.empty() && (StringRef(a).starts_with(b) || (!a.empty() && StringRef(b).starts_with(a)));
}

/// The name of an operator of PyTorch: its innermost module, `body.0.conv`. Where the class of the module does not say
/// the operator, that follows: `body.0.add`. `scopes` are the paths of modules from the outermost one on, and the name
/// of the exporter's node. `classes` are the classes of these modules, and the operator.
static std::string joinScopes(llvm::ArrayRef<std::string> scopes, llvm::ArrayRef<std::string> classes) {
  if (scopes.empty())
    return "";
  std::string op = dropNumber(scopes.back()).str();
  StringRef module;
  bool isKnown = classes.size() == scopes.size() && !classes.back().empty();
  if (isKnown && StringRef(classes.back()).contains('.'))
    op = getBaseName(classes.back(), /*isOperator=*/true).str();
  if (scopes.size() > 1)
    module = scopes[scopes.size() - 2];
  if (module.empty())
    return op;
  bool isSaid = isKnown && isSaidBy(getBaseName(classes[classes.size() - 2], /*isOperator=*/false), op);
  return isSaid || op.empty() ? module.str() : (module + "." + op).str();
}

/// Whether a file is a part of what runs or exports models, and not of one.
static bool isOfFramework(StringRef file) {
  llvm::SmallVector<StringRef> parts;
  llvm::SplitString(file, parts, "/\\");
  for (auto [index, part] : llvm::enumerate(parts)) {
    bool isPackage = index > 0 && (parts[index - 1] == "site-packages" || parts[index - 1] == "dist-packages");
    if (isPackage && llvm::is_contained({"torch", "functorch", "jax", "jaxlib", "jax2onnx", "flax", "onnx_ir"}, part))
      return true;
    if (part == "torch" && index + 1 < parts.size() && parts[index + 1] == "nn")
      return true;
  }
  return file.starts_with("<");
}

/// Sets the place to that of the last frame of a Python traceback that is not of a framework, or else the last one.
static void readTraceback(StringRef text, SourceName &source) {
  StringRef found;
  uint32_t foundLine = 0;
  bool isFrameworks = true;
  for (StringRef frame : llvm::split(text, '\n')) {
    uint32_t line;
    frame = frame.trim();
    if (!frame.consume_front("File \""))
      continue;
    size_t end = frame.find("\", line ");
    if (end == StringRef::npos)
      continue;
    StringRef file = frame.take_front(end);
    frame = frame.drop_front(end + StringRef("\", line ").size());
    if (frame.consumeInteger(10, line) || line == 0)
      continue;
    bool isHere = !isOfFramework(file);
    if (!isHere && !isFrameworks)
      continue;
    isFrameworks = !isHere;
    found = file;
    foundLine = line;
  }
  size_t folder = found.find_last_of("/\\");
  source.file = found.substr(folder == StringRef::npos ? 0 : folder + 1).str();
  source.line = foundLine;
}

/// Reads the metadata of a node as exporters write them.
static SourceName readMetadata(const onnx::NodeProto &node) {
  SourceName source;
  StringRef scopes = getValue(node, "pkg.torch.onnx.name_scopes"), space = getValue(node, "namespace");
  if (!scopes.empty())
    source.name = joinScopes(parseList(scopes), parseList(getValue(node, "pkg.torch.onnx.class_hierarchy")));
  if (source.name.empty() && space.contains(": ")) {
    auto [names, classes] = parseNamespace(space);
    source.name = joinScopes(names, classes);
  } else if (source.name.empty()) {
    source.name = space.trim('/').str();
  }
  // `forward:12`, or `forward` without a line.
  StringRef callSite = getValue(node, "pkg.jax2onnx.callsite");
  auto [function, line] = callSite.rsplit(':');
  if (source.name.empty() && !function.trim().empty()) {
    source.name = function.trim().str();
    if (line.trim().getAsInteger(10, source.line))
      source.line = 0;
  }
  for (StringRef key : {"pkg.torch.onnx.stack_trace", "pkg.jax2onnx.jax_traceback", "pkg.jax2onnx.stacktrace"})
    if (source.file.empty())
      if (StringRef trace = getValue(node, key); !trace.empty()) {
        SourceName place;
        readTraceback(trace, place);
        if (place.line > 0) {
          source.file = std::move(place.file);
          source.line = place.line;
        }
      }
  source.name = text::clean(source.name, text::maxSourceName);
  source.file = text::clean(source.file, text::maxSourceName);
  return source;
}

/// Frees the metadata of a part of a model. To clear a list would keep its memory.
template <typename Part> static void dropMetadata(Part &part) {
  std::decay_t<decltype(part.metadata_props())>().Swap(part.mutable_metadata_props());
}

static void condense(onnx::GraphProto &graph);

static void condense(google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes) {
  for (onnx::NodeProto &node : nodes) {
    for (onnx::AttributeProto &attribute : *node.mutable_attribute()) {
      if (attribute.has_g())
        condense(*attribute.mutable_g());
      for (onnx::GraphProto &graph : *attribute.mutable_graphs())
        condense(graph);
    }
    if (node.metadata_props_size() == 0)
      continue;
    SourceName source = readMetadata(node);
    dropMetadata(node);
    auto add = [&](StringRef key, std::string value) {
      onnx::StringStringEntryProto &entry = *node.add_metadata_props();
      entry.set_key(key.str());
      entry.set_value(std::move(value));
    };
    if (!source.name.empty())
      add(kNameKey, source.name);
    if (source.line > 0) {
      add(kFileKey, source.file);
      add(kLineKey, std::to_string(source.line));
    }
  }
}

static void condense(onnx::GraphProto &graph) {
  condense(*graph.mutable_node());
  dropMetadata(graph);
  for (auto *values : {graph.mutable_input(), graph.mutable_output(), graph.mutable_value_info()})
    for (onnx::ValueInfoProto &value : *values)
      dropMetadata(value);
}

void dovetail::importer::condenseMetadata(onnx::ModelProto &model) {
  dropMetadata(model);
  // A model without a graph is to stay one.
  if (model.has_graph())
    condense(*model.mutable_graph());
  for (onnx::FunctionProto &function : *model.mutable_functions()) {
    dropMetadata(function);
    condense(*function.mutable_node());
  }
}

SourceName dovetail::importer::getSourceName(const onnx::NodeProto &node) {
  SourceName source{getValue(node, kNameKey).str(), getValue(node, kFileKey).str()};
  if (getValue(node, kLineKey).getAsInteger(10, source.line))
    source.line = 0;
  return source;
}
