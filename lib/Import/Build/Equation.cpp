//===- Equation.cpp - Equations of Einstein summation ---------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines Equation.
//
//===----------------------------------------------------------------------===//

#include "Equation.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <map>

using namespace dovetail;
using namespace dovetail::importer;

/// One term, before it is known what an ellipsis in it stands for: letters, and where among them it is.
namespace {
struct Term {
  llvm::SmallVector<Label> letters;
  std::optional<size_t> ellipsis;

  /// With the last `rank` dimensions of ellipses in its place.
  llvm::SmallVector<Label> expand(int64_t rank) const {
    llvm::SmallVector<Label> labels(letters);
    if (ellipsis) {
      llvm::SmallVector<Label> dims;
      for (Label label = -static_cast<Label>(rank); label < 0; ++label)
        dims.push_back(label);
      labels.insert(labels.begin() + *ellipsis, dims.begin(), dims.end());
    }
    return labels;
  }
};
} // namespace

static std::optional<Term> parseTerm(llvm::StringRef text, std::string &problem) {
  Term term;
  for (size_t position = 0; position < text.size(); ++position) {
    if (llvm::isAlpha(text[position])) {
      term.letters.push_back(text[position]);
      continue;
    }
    if (!text.substr(position).starts_with("...")) {
      problem = "'equation' has '" + text.substr(position, 1).str() + "' where a letter or '...' should be";
      return std::nullopt;
    }
    if (term.ellipsis) {
      problem = "term '" + text.str() + "' of 'equation' has two ellipses";
      return std::nullopt;
    }
    term.ellipsis = term.letters.size();
    position += 2;
  }
  return term;
}

std::optional<Equation> Equation::parse(llvm::StringRef given, llvm::ArrayRef<llvm::ArrayRef<int64_t>> shapes,
                                        std::string &problem) {
  std::string spaceless = given.str();
  llvm::erase_if(spaceless, [](char c) { return llvm::isSpace(c); });
  llvm::StringRef text = spaceless;
  auto fail = [&](const llvm::Twine &why) {
    problem = why.str();
    return std::nullopt;
  };

  size_t arrow = text.find("->");
  llvm::SmallVector<llvm::StringRef> parts;
  text.take_front(arrow).split(parts, ',');
  if (parts.size() != shapes.size())
    return fail("'equation' has " + llvm::Twine(parts.size()) + " terms for " + llvm::Twine(shapes.size()) +
                " operands");

  Equation equation;
  int64_t ellipsisRank = 0;
  std::map<Label, unsigned> occurrences;
  for (auto [number, part, shape] : llvm::enumerate(parts, shapes)) {
    std::optional<Term> term = parseTerm(part, problem);
    if (!term)
      return std::nullopt;
    int64_t rank = shape.size(), rest = rank - static_cast<int64_t>(term->letters.size());
    if (rest < 0 || (rest > 0 && !term->ellipsis))
      return fail("term '" + part + "' of 'equation' does not fit operand " + llvm::Twine(number) + ", which has " +
                  llvm::Twine(rank) + " dimensions");
    if (term->ellipsis)
      ellipsisRank = std::max(ellipsisRank, rest);
    equation.operands.push_back(term->expand(rest));
    for (auto [label, extent] : llvm::zip_equal(equation.operands.back(), shape)) {
      ++occurrences[label];
      int64_t &known = equation.extents.try_emplace(label, 1).first->second;
      if (extent != 1 && known != 1 && extent != known)
        return fail("index '" + (label < 0 ? std::string("...") : std::string(1, static_cast<char>(label))) +
                    "' of 'equation' has extents " + llvm::Twine(known) + " and " + llvm::Twine(extent));
      known = extent == 1 ? known : extent;
    }
  }

  if (arrow == llvm::StringRef::npos) {
    // Dimensions of ellipses have negative labels, which come first.
    for (auto [label, count] : occurrences)
      if (label < 0 || count == 1)
        equation.result.push_back(label);
    return equation;
  }
  std::optional<Term> term = parseTerm(text.drop_front(arrow + 2), problem);
  if (!term)
    return std::nullopt;
  if (ellipsisRank > 0 && !term->ellipsis)
    return fail("the result in 'equation' has no ellipsis, but operands have dimensions in theirs");
  equation.result = term->expand(ellipsisRank);
  for (auto [position, label] : llvm::enumerate(equation.result)) {
    if (!occurrences.count(label))
      return fail("index '" + std::string(1, static_cast<char>(label)) +
                  "' of the result in 'equation' is in no operand");
    if (llvm::is_contained(llvm::ArrayRef(equation.result).take_front(position), label))
      return fail("index '" + std::string(1, static_cast<char>(label)) + "' comes twice in the result in 'equation'");
  }
  return equation;
}
