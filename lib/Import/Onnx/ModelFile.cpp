//===- ModelFile.cpp - Reading ONNX files -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements readModel: binary files through protobuf, text through ONNX's
// parser, neither of which is trusted with hostile input further than its own
// checks go.
//
//===----------------------------------------------------------------------===//

#include "ModelFile.h"
#include "SourceNames.h"

#include "dovetail/runtime/ArtifactFormat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "onnx/defs/parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <limits>

using namespace dovetail;
using namespace dovetail::importer;

namespace {

/// Nesting that no honest text has, and that the recursive parser survives.
constexpr int kMaxTextNesting = 100;

std::unique_ptr<llvm::MemoryBuffer> openFile(Reporter &reporter) {
  llvm::StringRef path = reporter.getPath();
  llvm::sys::fs::file_status status;
  if (std::error_code error = llvm::sys::fs::status(path, status)) {
    reporter.error(ImportError::File) << "cannot open model '" << path << "': " << error.message();
    return nullptr;
  }
  if (status.type() != llvm::sys::fs::file_type::regular_file) {
    reporter.error(ImportError::File) << "model '" << path << "' is not a regular file";
    return nullptr;
  }
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer) {
    reporter.error(ImportError::File) << "cannot read model '" << path << "': " << buffer.getError().message();
    return nullptr;
  }
  return std::move(*buffer);
}

/// True if brackets outside of strings and comments nest deeper than the
/// parser, which recurses on them, should see.
bool nestsTooDeep(llvm::StringRef text) {
  int depth = 0;
  for (size_t i = 0, e = text.size(); i < e; ++i) {
    switch (text[i]) {
    case '#':
      i = std::min(text.find('\n', i), e);
      break;
    case '"':
      for (++i; i < e && text[i] != '"'; ++i)
        if (text[i] == '\\')
          ++i;
      break;
    case '(':
    case '{':
    case '[':
    case '<':
      if (++depth > kMaxTextNesting)
        return true;
      break;
    case ')':
    case '}':
    case ']':
    case '>':
      // "=>" separates inputs from outputs.
      if (text[i] != '>' || i == 0 || text[i - 1] != '=')
        --depth;
      break;
    }
  }
  return false;
}

llvm::LogicalResult parseText(llvm::StringRef text, onnx::ModelProto &model, Reporter &reporter) {
  if (nestsTooDeep(text))
    return reporter.invalid() << "model '" << reporter.getPath() << "' nests brackets deeper than " << kMaxTextNesting;
  try {
    std::string copy = text.str();
    onnx::OnnxParser parser(copy.c_str());
    onnx::Common::Status status = parser.Parse(model);
    if (!status.IsOK())
      return reporter.invalid() << "model '" << reporter.getPath()
                                << "' is not ONNX text: " << llvm::StringRef(status.ErrorMessage());
    if (!parser.EndOfInput())
      return reporter.invalid() << "model '" << reporter.getPath() << "' has text after its last graph or function";
  } catch (const std::exception &error) {
    return reporter.invalid() << "model '" << reporter.getPath() << "' is not ONNX text: bad number (" << error.what()
                              << ")";
  }
  return llvm::success();
}

llvm::LogicalResult parseBinary(llvm::StringRef bytes, onnx::ModelProto &model, Reporter &reporter) {
  llvm::StringRef path = reporter.getPath();
  if (bytes.starts_with(llvm::StringRef(runtime::artifactMagic, sizeof(runtime::artifactMagic))))
    return reporter.error(ImportError::Usage)
           << "'" << path
           << "' is a compiled program, not a model; give the model that it was compiled from (`dovetail run`, "
              "`inspect`, `bench` and `verify --expect` take programs)";
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max()))
    return reporter.invalid() << "model '" << path
                              << "' is larger than 2 GiB, which protobuf cannot hold: save its "
                                 "weights as external data";
  // What protobuf would print is reported as a diagnostic.
  google::protobuf::LogSilencer silencer;
  google::protobuf::io::ArrayInputStream array(bytes.data(), bytes.size());
  google::protobuf::io::CodedInputStream stream(&array);
  stream.SetTotalBytesLimit(std::numeric_limits<int>::max());
  if (!model.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage())
    return reporter.invalid() << "model '" << path
                              << "' is not an ONNX file, or it is truncated or damaged (protobuf "
                                 "cannot parse its "
                              << bytes.size() << " bytes)";
  return llvm::success();
}

} // namespace

std::shared_ptr<const onnx::ModelProto> dovetail::importer::readModel(Reporter &reporter) {
  std::unique_ptr<llvm::MemoryBuffer> buffer = openFile(reporter);
  return buffer ? parseModel(buffer->getBuffer(), reporter) : nullptr;
}

std::shared_ptr<const onnx::ModelProto> dovetail::importer::parseModel(llvm::StringRef bytes, Reporter &reporter) {
  auto model = std::make_shared<onnx::ModelProto>();
  bool isText = reporter.getPath().ends_with(".onnxtxt");
  llvm::LogicalResult parsed = isText ? parseText(bytes, *model, reporter) : parseBinary(bytes, *model, reporter);
  if (failed(parsed))
    return nullptr;
  condenseMetadata(*model);
  return model;
}
