//===- ArchiveTest.cpp - Records of long archives ---------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../../../../runtime/tools/Npz.h"

#include "gtest/gtest.h"

#include <cstring>
#include <map>

using namespace dovetail;
using namespace dovetail::tools;

namespace {

/// An archive of which only the records are there.
class Records {
public:
  void add(const std::string &file, uint64_t bytes) {
    put(records.beginMember(file, bytes, 7));
    begins.push_back(size);
    size += static_cast<int64_t>(bytes);
  }
  absl::StatusOr<std::vector<NpzMember>> list() {
    put(records.end());
    return listNpz(size, [&](int64_t offset, std::byte *target, int64_t bytes) {
      std::memset(target, 0, bytes);
      auto first = texts.upper_bound(offset);
      for (auto it = first == texts.begin() ? first : std::prev(first); it != texts.end(); ++it) {
        const auto &[begin, text] = *it;
        if (begin >= offset + bytes)
          break;
        int64_t from = std::max(begin, offset);
        int64_t to = std::min(begin + static_cast<int64_t>(text.size()), offset + bytes);
        if (from < to)
          std::memcpy(target + (from - offset), text.data() + (from - begin), to - from);
      }
      return absl::OkStatus();
    });
  }

  std::vector<int64_t> begins;

private:
  void put(std::string text) {
    int64_t bytes = static_cast<int64_t>(text.size());
    texts[size] = std::move(text);
    size += bytes;
  }

  NpzRecords records;
  std::map<int64_t, std::string> texts;
  int64_t size = 0;
};

void check(const std::vector<uint64_t> &sizes) {
  Records records;
  for (size_t i = 0; i < sizes.size(); ++i)
    records.add("x" + std::to_string(i) + ".npy", sizes[i]);
  absl::StatusOr<std::vector<NpzMember>> members = records.list();
  ASSERT_TRUE(members.ok()) << members.status();
  ASSERT_EQ(members->size(), sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    const NpzMember &member = (*members)[i];
    EXPECT_EQ(member.name, "x" + std::to_string(i));
    EXPECT_EQ(member.begin, records.begins[i]);
    EXPECT_EQ(member.bytes, static_cast<int64_t>(sizes[i]));
    EXPECT_EQ(member.unpacked, member.bytes);
    EXPECT_EQ(member.checksum, 7u);
    EXPECT_TRUE(member.isStored());
  }
}

constexpr uint64_t most32 = 0xffffffff;

TEST(Archive, ShortMembers) { check({0, 1, 12345}); }
TEST(Archive, NoMembers) { check({}); }
/// Sizes and places of 32 bits, of all bits, and of more; a long one before, between and behind.
TEST(Archive, LongMembers) { check({5, most32 - 1, 3, most32, 4, most32 + 1, 6, uint64_t(1) << 40, 1}); }
/// Places of more than 32 bits alone.
TEST(Archive, ManyMembers) { check(std::vector<uint64_t>(70000, 100000)); }

} // namespace
