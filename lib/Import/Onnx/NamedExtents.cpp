//===- NamedExtents.cpp - Extents of dimensions with names ----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements NamedExtents.
//
//===----------------------------------------------------------------------===//

#include "NamedExtents.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace dovetail::importer;
using llvm::StringRef;

void NamedExtents::addName(StringRef name) {
  if (names.contains(name))
    return;
  std::optional<DimValue> value = evaluateDim(name, [](StringRef) { return std::nullopt; });
  bool isExpression = value && !value->symbols.empty() && value->symbols.front() != name;
  names[name] = isExpression;
  if (isExpression)
    for (StringRef symbol : value->symbols)
      symbols[symbol] = true;
}

llvm::SmallVector<StringRef> NamedExtents::getKnown() const {
  llvm::SmallVector<StringRef> known(llvm::make_first_range(names));
  for (StringRef symbol : llvm::make_first_range(symbols))
    if (!names.contains(symbol))
      known.push_back(symbol);
  return known;
}

const GivenExtent *NamedExtents::find(StringRef name) const {
  auto it = extents.find(name);
  return it == extents.end() ? nullptr : &it->second;
}

DimValue NamedExtents::evaluate(StringRef name) const {
  return *evaluateDim(name, [&](StringRef symbol) -> std::optional<int64_t> {
    const GivenExtent *extent = find(symbol);
    return extent && !extent->isBound ? std::optional(extent->value) : std::nullopt;
  });
}

std::string NamedExtents::getOrigins(const DimValue &value) const {
  std::string text;
  for (StringRef symbol : value.symbols)
    if (const GivenExtent *extent = find(symbol); extent && !StringRef(text).contains(extent->origin))
      text += (text.empty() ? "" : " and ") + extent->origin;
  return text;
}

std::optional<std::string> NamedExtents::settle(StringRef name, bool &isNew) {
  DimValue value = evaluate(name);
  const GivenExtent *given = find(name);
  auto hasValue = [&](StringRef symbol) {
    const GivenExtent *extent = find(symbol);
    return extent && !extent->isBound;
  };
  if (llvm::all_of(value.symbols, hasValue)) {
    std::string origins = getOrigins(value);
    if (!value.isConstant())
      return origins + ": dimension '" + name.str() + "' cannot be computed";
    if (value.constant < 0)
      return origins + ": dimension '" + name.str() + "' would be " + std::to_string(value.constant) +
             "; an extent is at least 0";
    if (!given) {
      give(name, {value.constant, std::move(origins)});
      isNew = true;
    } else if (given->isBound || given->value != value.constant) {
      return given->origin + ": dimension '" + name.str() + "' is " + std::to_string(value.constant) + " by " +
             origins + "; give either of them";
    }
    return std::nullopt;
  }
  // Of one symbol with a factor, the extent says what it is.
  if (!given || given->isBound || !value.isSum || value.factors.size() != 1 || hasValue(value.factors.begin()->first))
    return std::nullopt;
  auto [symbol, factor] = *value.factors.begin();
  if (const GivenExtent *bound = find(symbol))
    return bound->origin + ": dimension '" + name.str() + "' is " + std::to_string(given->value) + " by " +
           given->origin + ", so '" + symbol.str() + "' cannot vary; give either of them";
  int64_t rest;
  bool overflows = llvm::SubOverflow(given->value, value.constant, rest);
  if (overflows || rest % factor != 0 || rest / factor < 0) {
    std::string origins = getOrigins(value);
    return given->origin + (origins.empty() ? "" : " and " + origins) + ": there is no extent '" + symbol.str() +
           "' for which dimension '" + name.str() + "' is " + std::to_string(given->value);
  }
  give(symbol, {rest / factor, given->origin});
  isNew = true;
  return std::nullopt;
}

std::optional<std::string> NamedExtents::settle() {
  for (bool isNew = true; isNew;) {
    isNew = false;
    for (auto [name, isExpression] : names)
      if (isExpression)
        if (std::optional<std::string> contradiction = settle(name, isNew))
          return contradiction;
  }
  return std::nullopt;
}

llvm::SmallVector<StringRef> NamedExtents::getMissing(StringRef name) const {
  if (find(name))
    return {};
  if (!names.lookup(name))
    return {name};
  llvm::SmallVector<StringRef> missing;
  for (StringRef symbol : evaluate(name).symbols) {
    const GivenExtent *extent = find(symbol);
    // From a length that varies no extent follows: the dimension itself needs an option.
    if (extent && extent->isBound)
      return {name};
    if (!extent)
      missing.push_back(symbol);
  }
  return missing;
}
