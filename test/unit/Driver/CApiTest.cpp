//===- CApiTest.cpp - The compiler's C ABI -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/compiler.h"

#include "dovetail/runtime/Program.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using testing::HasSubstr;

static constexpr char kModel[] = R"(<ir_version: 8, opset_import: ["" : 17]>
twice (float[6, 4] x) => (float[6, 4] y) { y = Add(x, x) })";

namespace {
/// A compilation of `kModel`.
struct Compiled {
  explicit Compiled(std::vector<const char *> options, std::string name = "twice.onnxtxt") {
    code = dovetail_compile_bytes(kModel, sizeof(kModel) - 1, name.c_str(), options.data(), options.size(), &result);
  }
  ~Compiled() { dovetail_compilation_free(result); }

  dovetail_compilation *result = nullptr;
  int code = -1;
};
} // namespace

TEST(CompilerApi, CompilesToAnArtifact) {
  Compiled compiled({"--mesh", "y=3", "--shard", "x=y,_", "--sizes", "x:0=1,2,3"});
  ASSERT_EQ(compiled.code, 0) << dovetail_compilation_messages(compiled.result);
  EXPECT_STREQ(dovetail_compilation_messages(compiled.result), "");
  size_t size = 0;
  const void *artifact = dovetail_compilation_artifact(compiled.result, &size);
  ASSERT_NE(artifact, nullptr);
  auto program = dovetail::runtime::Program::load(absl::MakeConstSpan(static_cast<const std::byte *>(artifact), size));
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ((*program)->numRanks(), 3);
  EXPECT_EQ((*program)->getPlan().inputs[0].name, "x");
  EXPECT_THAT(dovetail_compilation_summary(compiled.result), HasSubstr("3 ranks ("));
}

TEST(CompilerApi, ReportsErrors) {
  Compiled axis({"--mesh", "y=3", "--shard", "x=z,_"});
  EXPECT_EQ(axis.code, 2);
  EXPECT_THAT(dovetail_compilation_messages(axis.result), HasSubstr("dovetail: error: '--shard x=z,_'"));
  size_t size = 1;
  EXPECT_EQ(dovetail_compilation_artifact(axis.result, &size), nullptr);
  EXPECT_EQ(size, 0u);
  EXPECT_STREQ(dovetail_compilation_summary(axis.result), "");

  Compiled option({"--frobnicate"});
  EXPECT_EQ(option.code, 2);
  EXPECT_THAT(dovetail_compilation_messages(option.result), HasSubstr("--frobnicate"));

  // The name says that these bytes are protobuf.
  Compiled binary({}, "twice.onnx");
  EXPECT_EQ(binary.code, 4);
  EXPECT_THAT(dovetail_compilation_messages(binary.result), HasSubstr("twice.onnx"));

  dovetail_compilation *missing = nullptr;
  EXPECT_EQ(dovetail_compile_file("no/such.onnx", nullptr, 0, &missing), 3);
  EXPECT_THAT(dovetail_compilation_messages(missing), HasSubstr("no/such.onnx"));
  dovetail_compilation_free(missing);
}
