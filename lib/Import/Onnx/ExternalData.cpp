//===- ExternalData.cpp - Tensors outside of the model file -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements the part of TensorReader that maps external data. A model must not
// reach files outside of its folder: locations are relative without "..", and the
// path of the opened file, all links resolved, lies below the folder.
//
//===----------------------------------------------------------------------===//

#include "TensorData.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace dovetail;
using namespace dovetail::importer;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

/// True if `location` names a file below some folder by its spelling alone.
static bool staysBelow(llvm::StringRef location) {
  if (location.empty() || location.contains('\0') || location.contains('\\') || path::is_absolute(location))
    return false;
  return std::none_of(path::begin(location), path::end(location),
                      [](llvm::StringRef component) { return component == ".."; });
}

std::shared_ptr<llvm::MemoryBuffer> TensorReader::openExternal(llvm::StringRef location, llvm::StringRef what) {
  if (auto it = externalFiles.find(location); it != externalFiles.end())
    return it->second;
  if (!staysBelow(location)) {
    reporter.invalid() << what << " has its data in '" << location
                       << "': external data must lie in the model's folder, named by a relative path without '..'";
    return nullptr;
  }
  llvm::SmallString<256> folder(path::parent_path(reporter.getPath()));
  if (folder.empty())
    folder = ".";
  llvm::SmallString<256> file(folder), realFolder, realFile;
  path::append(file, location);
  auto cannotOpen = [&](std::error_code error) {
    reporter.error(ImportError::File) << "cannot open '" << file << "', the data of " << what << ": "
                                      << error.message();
    return nullptr;
  };
  // Asked before opening, because opening a pipe would wait.
  fs::file_status status;
  if (std::error_code error = fs::status(file, status)) {
    if (!mayMissData || error != std::errc::no_such_file_or_directory)
      return cannotOpen(error);
    if (missingFiles.insert(location).second)
      reporter.addMissingFile(file);
    return nullptr;
  }
  if (status.type() != fs::file_type::regular_file) {
    reporter.error(ImportError::File) << "'" << file << "', the data of " << what << ", is not a regular file";
    return nullptr;
  }
  if (std::error_code error = fs::real_path(folder, realFolder))
    return cannotOpen(error);
  // The real path is that of the open descriptor, so nobody can exchange the file after the check.
  llvm::Expected<fs::file_t> handle = fs::openNativeFileForRead(file, fs::OF_None, &realFile);
  if (!handle)
    return cannotOpen(llvm::errorToErrorCode(handle.takeError()));
  std::shared_ptr<llvm::MemoryBuffer> buffer;
  llvm::StringRef below(realFile);
  if (realFile.empty() || !below.consume_front(realFolder) || !(realFolder == "/" || below.starts_with("/"))) {
    reporter.invalid() << what << " has its data in '" << location << "', which links to a file out of the model's "
                       << "folder: copy the file into the folder";
  } else if (auto opened = llvm::MemoryBuffer::getOpenFile(*handle, file, /*FileSize=*/-1,
                                                           /*RequiresNullTerminator=*/false)) {
    buffer = std::move(*opened);
  } else {
    cannotOpen(opened.getError());
  }
  fs::closeFile(*handle);
  if (buffer) {
    externalFiles[location] = buffer;
    reporter.addExternalFile(file);
  }
  return buffer;
}

mlir::ElementsAttr TensorReader::readExternal(const onnx::TensorProto &tensor, mlir::RankedTensorType type,
                                              mlir::RankedTensorType stored, uint64_t size, llvm::StringRef what) {
  llvm::StringRef location;
  uint64_t offset = 0, length = size;
  for (const onnx::StringStringEntryProto &entry : tensor.external_data()) {
    llvm::StringRef key = entry.key(), value = entry.value();
    if (key == "location") {
      location = value;
    } else if (key == "offset" || key == "length") {
      if (value.getAsInteger(10, key == "offset" ? offset : length)) {
        reporter.invalid() << what << " has external data with " << key << " '" << value
                           << "': expected a number of bytes";
        return {};
      }
    }
  }
  if (length != size) {
    reporter.invalid() << what << " has type " << type << ", which takes " << size
                       << " bytes, but its external data have " << length;
    return {};
  }
  std::shared_ptr<llvm::MemoryBuffer> file = openExternal(location, what);
  if (!file)
    return missingFiles.contains(location) ? makeMissingConstant(stored, tensor.name()) : mlir::ElementsAttr();
  uint64_t available = file->getBufferSize();
  if (offset > available || size > available - offset) {
    reporter.invalid() << what << " has its data at bytes " << offset << " to " << offset << " + " << size << " of '"
                       << location << "', which has only " << available << ": the file is truncated";
    return {};
  }
  llvm::ArrayRef<char> bytes(file->getBufferStart() + offset, size);
  return makePackedConstant(stored, bytes, file, tensor.name());
}
