//===- ClusterFile.cpp - Clusters in files --------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements Cluster::parse and Cluster::write.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Cost/Cluster.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/Twine.h"

#include <cmath>
#include <nlohmann/json.hpp>

using namespace dovetail;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;
// Keys stay in the order in which they are written.
using Json = nlohmann::ordered_json;

/// More ranks than any machine has.
static constexpr int64_t kMaxRanks = 1 << 16;

namespace {

enum class Unit { Bytes, Seconds, BytesPerSecond, PerSecond, Number };

/// A key of a device or of a link.
template <typename T> struct Field {
  StringRef key;
  double T::*member;
  Unit unit;
  /// Whether 0 is a value: of times, yes; of speeds, no.
  bool mayBeZero;
  /// What it may be at most, if that is less than anything of this unit may be.
  double most = 1e30;
};

constexpr Field<Device> kDeviceFields[] = {
    {"step", &Device::stepSeconds, Unit::Seconds, true},
    {"products_32", &Device::products32, Unit::PerSecond, false},
    {"products_16", &Device::products16, Unit::PerSecond, false},
    {"products_tf32", &Device::productsTf32, Unit::PerSecond, true},
    {"half_rows", &Device::halfRows, Unit::Number, true},
    {"half_columns", &Device::halfColumns, Unit::Number, true},
    {"half_depth", &Device::halfDepth, Unit::Number, true},
    {"column_step", &Device::columnStep, Unit::Number, false},
    {"depthwise", &Device::depthwise, Unit::PerSecond, false},
    {"half_taps", &Device::halfTaps, Unit::Number, true},
    {"operations", &Device::operations, Unit::PerSecond, false},
    {"row_step", &Device::rowStep, Unit::Number, false},
    {"bytes", &Device::bytes, Unit::BytesPerSecond, false},
    {"cached_bytes", &Device::cachedBytes, Unit::BytesPerSecond, false},
    {"cache", &Device::cacheBytes, Unit::Bytes, true},
    {"near_bytes", &Device::nearBytes, Unit::BytesPerSecond, true},
    {"near_cache", &Device::nearCacheBytes, Unit::Bytes, true},
    {"copied_bytes", &Device::copiedBytes, Unit::BytesPerSecond, false},
    {"serial_share", &Device::serialShare, Unit::Number, true, 1},
};

constexpr Field<Link> kLinkFields[] = {
    {"exchange", &Link::exchangeSeconds, Unit::Seconds, true},
    {"message", &Link::messageSeconds, Unit::Seconds, true},
    {"bytes", &Link::bytes, Unit::BytesPerSecond, false},
};

/// Reads one file.
class ClusterReader {
public:
  explicit ClusterReader(StringRef file) : file(file) {}

  Expected<Cluster> read(StringRef text);

private:
  Error error(const Twine &key, const Twine &message) const {
    return llvm::createStringError("'" + file + "': " + key + (key.isTriviallyEmpty() ? "" : ": ") + message);
  }
  /// That `json` is an object with no other keys than these.
  Error checkKeys(const Json &json, const Twine &key, llvm::ArrayRef<StringRef> known) const;
  Expected<double> readNumber(const Json &json, const Twine &key, Unit unit, bool mayBeZero, double most) const;
  Expected<int64_t> readCount(const Json &json, const Twine &key, int64_t most) const;
  Expected<std::string> readText(const Json &json, const Twine &key) const;
  template <typename T>
  Error readFields(const Json &json, const Twine &key, llvm::ArrayRef<Field<T>> fields, bool isComplete,
                   T &result) const;
  Expected<Device> readDevice(const Json &json, StringRef name) const;
  Expected<Link> readLink(const Json &json, const Twine &key) const;
  Error readRanks(const Json &json);

  StringRef file;
  llvm::StringMap<Device> devices;
  /// In the order of the file.
  std::vector<std::string> names;
  std::vector<Device> ranks;
};

} // namespace

static StringRef getExample(Unit unit) {
  switch (unit) {
  case Unit::Bytes:
    return "85899345920 or \"80GiB\"";
  case Unit::Seconds:
    return "1e-5 or \"10us\"";
  case Unit::BytesPerSecond:
    return "3e11 or \"300GB/s\"";
  case Unit::PerSecond:
    return "5e10 or \"50G/s\"";
  case Unit::Number:
    return "16";
  }
  llvm_unreachable("covered switch");
}

static StringRef getName(Unit unit) {
  switch (unit) {
  case Unit::Bytes:
    return "bytes";
  case Unit::Seconds:
    return "seconds";
  case Unit::BytesPerSecond:
    return "bytes in a second";
  case Unit::PerSecond:
    return "operations in a second";
  case Unit::Number:
    return "terms";
  }
  llvm_unreachable("covered switch");
}

/// The least that a number may be that is not 0, and the most: far beyond what there is, but sums and quotients of such
/// numbers are finite.
static std::pair<double, double> getRange(Unit unit) {
  switch (unit) {
  case Unit::Bytes:
    return {0, 0x1p62};
  case Unit::Seconds:
    return {0, 1e9};
  case Unit::BytesPerSecond:
  case Unit::PerSecond:
    return {1, 1e30};
  case Unit::Number:
    return {0, 1e12};
  }
  llvm_unreachable("covered switch");
}

/// What a number with `suffix` is multiplied with, if it is one of this unit.
static std::optional<double> getScale(StringRef suffix, Unit unit) {
  if (unit == Unit::Seconds) {
    for (auto [name, scale] : {std::pair(StringRef("s"), 1.0), {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}})
      if (suffix == name)
        return scale;
    return std::nullopt;
  }
  if (unit == Unit::Number)
    return std::nullopt;
  if (unit != Unit::Bytes && !suffix.consume_back("/s"))
    return std::nullopt;
  if (unit != Unit::PerSecond && !suffix.consume_back("B"))
    return std::nullopt;
  double step = suffix.consume_back("i") ? 1024 : 1000;
  size_t power = StringRef("_KMGTP").find(suffix.empty() ? "_" : suffix == "k" ? "K" : suffix);
  if (suffix.size() > 1 || power == StringRef::npos || (suffix.empty() && step == 1024))
    return std::nullopt;
  return std::pow(step, static_cast<double>(power));
}

/// A number with its unit, such as `80GiB`; nothing if it is none.
static std::optional<double> parseNumber(StringRef text, Unit unit) {
  StringRef digits = text.take_while([](char c) { return llvm::isDigit(c) || c == '.'; });
  double value;
  std::optional<double> scale = getScale(text.substr(digits.size()).trim(), unit);
  if (!scale || digits.empty() || digits.getAsDouble(value))
    return std::nullopt;
  // Divided by what is exact, "10us" is 1e-5.
  return *scale < 1 ? value / std::round(1 / *scale) : value * *scale;
}

std::optional<double> dovetail::parseBytes(StringRef text) {
  double number;
  return text.getAsDouble(number) ? parseNumber(text, Unit::Bytes) : std::optional(number);
}

/// As in messages, and short.
static std::string describe(const Json &json) {
  std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

Error ClusterReader::checkKeys(const Json &json, const Twine &key, llvm::ArrayRef<StringRef> known) const {
  if (!json.is_object())
    return error(key, "expected an object with the keys " + llvm::join(known, ", ") + ", not " + describe(json));
  for (const auto &[name, value] : json.items())
    if (!llvm::is_contained(known, StringRef(name)))
      return error(key, "unknown key " + describe(Json(name)) + "; the keys are " + llvm::join(known, ", "));
  return Error::success();
}

Expected<double> ClusterReader::readNumber(const Json &json, const Twine &key, Unit unit, bool mayBeZero,
                                           double most) const {
  std::optional<double> number;
  if (json.is_number()) {
    number = json.get<double>();
  } else if (json.is_string()) {
    number = parseNumber(json.get_ref<const std::string &>(), unit);
  }
  if (!number || !std::isfinite(*number) || *number < 0 || (*number == 0 && !mayBeZero))
    return error(key, describe(json) + " is not a " + (mayBeZero ? "" : "positive ") + "number of " + getName(unit) +
                          "; write for example " + getExample(unit));
  auto [leastOfUnit, mostOfUnit] = getRange(unit);
  if (*number > std::min(most, mostOfUnit))
    return error(key, describe(json) + " is too large");
  if (*number > 0 && *number < leastOfUnit)
    return error(key, describe(json) + " is too small");
  return *number;
}

Expected<int64_t> ClusterReader::readCount(const Json &json, const Twine &key, int64_t most) const {
  if (json.is_number_integer() && json.get<double>() >= 1 && json.get<double>() <= static_cast<double>(most))
    return json.get<int64_t>();
  return error(key, describe(json) + " is not a whole number from 1 to " + Twine(most));
}

Expected<std::string> ClusterReader::readText(const Json &json, const Twine &key) const {
  if (json.is_string() && !json.get_ref<const std::string &>().empty())
    return json.get<std::string>();
  return error(key, "expected a name in quotation marks, not " + describe(json));
}

template <typename T>
Error ClusterReader::readFields(const Json &json, const Twine &key, llvm::ArrayRef<Field<T>> fields, bool isComplete,
                                T &result) const {
  for (const Field<T> &field : fields) {
    auto found = json.find(field.key.str());
    if (found == json.end()) {
      if (isComplete)
        continue;
      return error(key, "'" + field.key + "' is missing; write for example " + getExample(field.unit));
    }
    Expected<double> number = readNumber(*found, key + "." + field.key, field.unit, field.mayBeZero, field.most);
    if (!number)
      return number.takeError();
    result.*field.member = *number;
  }
  return Error::success();
}

Expected<Device> ClusterReader::readDevice(const Json &json, StringRef name) const {
  std::string key = ("devices." + name).str();
  std::vector<StringRef> known = {"base", "memory"};
  for (const Field<Device> &field : kDeviceFields)
    known.push_back(field.key);
  if (Error failure = checkKeys(json, key, known))
    return failure;
  Device device;
  auto base = json.find("base");
  if (base != json.end()) {
    Expected<std::string> text = readText(*base, key + ".base");
    if (!text)
      return text.takeError();
    std::optional<Cluster> builtIn = Cluster::getBuiltIn(*text);
    if (!builtIn)
      return error(key + ".base", "unknown built-in device " + describe(*base) + "; the devices are " +
                                      llvm::join(Cluster::getBuiltInNames(), ", "));
    device = builtIn->getDevice(0);
  }
  device.name = name.str();
  if (auto memory = json.find("memory"); memory != json.end()) {
    Expected<double> bytes =
        readNumber(*memory, key + ".memory", Unit::Bytes, /*mayBeZero=*/true, getRange(Unit::Bytes).second);
    if (!bytes)
      return bytes.takeError();
    device.memoryBytes = static_cast<int64_t>(*bytes);
  }
  if (Error failure = readFields<Device>(json, key, kDeviceFields, base != json.end(), device))
    return failure;
  if (device.nearCacheBytes > 0 && device.nearBytes == 0)
    return error(key + ".near_bytes", "the speed of the cache of 'near_cache' bytes is missing; write 'near_bytes'");
  return device;
}

Expected<Link> ClusterReader::readLink(const Json &json, const Twine &key) const {
  std::vector<StringRef> known = {"name", "group", "copied"};
  for (const Field<Link> &field : kLinkFields)
    known.push_back(field.key);
  if (Error failure = checkKeys(json, key, known))
    return failure;
  Link link;
  if (auto name = json.find("name"); name != json.end()) {
    Expected<std::string> text = readText(*name, key + ".name");
    if (!text)
      return text.takeError();
    link.name = *text;
  }
  if (auto group = json.find("group"); group != json.end()) {
    Expected<int64_t> size = readCount(*group, key + ".group", kMaxRanks);
    if (!size)
      return size.takeError();
    link.groupSize = *size;
  }
  if (auto copied = json.find("copied"); copied != json.end()) {
    if (!copied->is_boolean())
      return error(key + ".copied", describe(*copied) + " is neither true nor false");
    link.isCopied = copied->get<bool>();
  }
  if (Error failure = readFields<Link>(json, key, kLinkFields, /*isComplete=*/false, link))
    return failure;
  return link;
}

Error ClusterReader::readRanks(const Json &json) {
  if (!json.is_array() || json.empty())
    return error("ranks", "expected the devices of ranks, such as [\"" + names.front() + "\", {\"device\": \"" +
                              names.front() + "\", \"count\": 3}], not " + describe(json));
  for (auto [i, entry] : llvm::enumerate(json)) {
    std::string key = ("ranks[" + Twine(i) + "]").str();
    Json device = entry;
    int64_t count = 1;
    if (entry.is_object()) {
      if (Error failure = checkKeys(entry, key, {"device", "count"}))
        return failure;
      device = entry.value("device", Json());
      key += ".device";
      if (auto found = entry.find("count"); found != entry.end()) {
        Expected<int64_t> read = readCount(*found, "ranks[" + Twine(i) + "].count", kMaxRanks);
        if (!read)
          return read.takeError();
        count = *read;
      }
    }
    Expected<std::string> name = readText(device, key);
    if (!name)
      return name.takeError();
    auto known = devices.find(*name);
    if (known == devices.end())
      return error(key, "'devices' has no " + describe(device) + "; it has " + llvm::join(names, ", "));
    if (static_cast<int64_t>(ranks.size()) + count > kMaxRanks)
      return error("ranks", "there are more than " + Twine(kMaxRanks) + " ranks");
    ranks.insert(ranks.end(), count, known->second);
  }
  return Error::success();
}

Expected<Cluster> ClusterReader::read(StringRef text) {
  Json json;
  try {
    json = Json::parse(text.begin(), text.end());
  } catch (const Json::exception &exception) {
    // Without the library's number in brackets.
    return error("", "the file is not JSON: " + StringRef(exception.what()).split("] ").second);
  }
  if (Error failure = checkKeys(json, "", {"name", "devices", "ranks", "repeat", "links"}))
    return failure;
  std::string name = file.str();
  if (auto found = json.find("name"); found != json.end()) {
    Expected<std::string> given = readText(*found, "name");
    if (!given)
      return given.takeError();
    name = *given;
  }
  auto found = json.find("devices");
  if (found == json.end() || !found->is_object() || found->empty())
    return error("devices", "expected an object with names and devices, such as {\"gpu\": {\"base\": \"h100\"}}");
  for (const auto &[deviceName, value] : found->items()) {
    Expected<Device> device = readDevice(value, deviceName);
    if (!device)
      return device.takeError();
    devices[deviceName] = *device;
    names.push_back(deviceName);
  }
  bool repeat = false;
  if (auto given = json.find("repeat"); given != json.end()) {
    if (!given->is_boolean())
      return error("repeat", describe(*given) + " is neither true nor false");
    repeat = given->get<bool>();
  }
  if (auto given = json.find("ranks"); given != json.end()) {
    if (Error failure = readRanks(*given))
      return failure;
  } else if (names.size() == 1) {
    ranks = {devices[names.front()]};
    repeat = true;
  } else {
    return error("", "there are several devices, but 'ranks' is missing; write which rank has which, such as "
                     "\"ranks\": [\"" +
                         names[0] + "\", \"" + names[1] + "\"]");
  }
  std::vector<Link> links;
  if (auto given = json.find("links"); given == json.end()) {
    // As of the built-in cluster on which the first device is based.
    const Json &first = json["devices"][names.front()];
    if (!first.contains("base"))
      return error("", "'links' is missing; write how ranks reach each other");
    links = Cluster::getBuiltIn(first["base"].get<std::string>())->getLinks();
  } else if (!given->is_array() || given->empty()) {
    return error("links", "expected a list of links, of the smallest group first, not " + describe(*given));
  } else {
    for (auto [i, value] : llvm::enumerate(*given)) {
      std::string key = ("links[" + Twine(i) + "]").str();
      Expected<Link> link = readLink(value, key);
      if (!link)
        return link.takeError();
      bool isLast = i + 1 == given->size();
      if (isLast != (link->groupSize == 0))
        return error(key + ".group", isLast ? "the last link connects all ranks; leave out 'group'"
                                            : "the size of the groups that it connects is missing; only the last "
                                              "link connects all ranks");
      if (!isLast && i > 0 && link->groupSize <= links.back().groupSize)
        return error(key + ".group", Twine(link->groupSize) + " is not larger than the groups of the link before, " +
                                         Twine(links.back().groupSize) +
                                         "; each link must connect larger groups than the one before");
      if (!isLast && i > 0 && link->groupSize % links.back().groupSize != 0)
        return error(key + ".group", Twine(link->groupSize) + " is not a multiple of the groups of the link before, " +
                                         Twine(links.back().groupSize));
      links.push_back(*link);
    }
  }
  int64_t numRanks = repeat ? 0 : static_cast<int64_t>(ranks.size());
  if (llvm::all_of(ranks, [&](const Device &device) { return device == ranks.front(); }))
    ranks.resize(1);
  return Cluster(name, std::move(ranks), std::move(links), numRanks);
}

Expected<Cluster> Cluster::parse(StringRef text, StringRef file) { return ClusterReader(file).read(text); }

std::string Cluster::write() const {
  Json json = {{"name", name}, {"devices", Json::object()}};
  Json ranks = Json::array();
  for (const Device &device : devices) {
    if (!ranks.empty() && ranks.back()["device"] == device.name) {
      ranks.back()["count"] = ranks.back()["count"].get<int64_t>() + 1;
      continue;
    }
    ranks.push_back({{"device", device.name}, {"count", 1}});
    Json &fields = json["devices"][device.name];
    fields = Json::object();
    if (device.memoryBytes)
      fields["memory"] = device.memoryBytes;
    for (const Field<Device> &field : kDeviceFields)
      fields[field.key.str()] = device.*field.member;
  }
  if (devices.size() == 1 && numRanks)
    ranks[0]["count"] = numRanks;
  if (devices.size() > 1 || numRanks)
    json["ranks"] = ranks;
  if (devices.size() > 1 && !numRanks)
    json["repeat"] = true;
  for (const Link &link : links) {
    Json fields = {{"name", link.name}};
    if (link.name.empty())
      fields = Json::object();
    if (link.groupSize)
      fields["group"] = link.groupSize;
    if (link.isCopied)
      fields["copied"] = true;
    for (const Field<Link> &field : kLinkFields)
      fields[field.key.str()] = link.*field.member;
    json["links"].push_back(fields);
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}
