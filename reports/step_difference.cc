#include "reports/step_difference.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace isthmus::reports {
namespace {

bool IsNumber(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](unsigned char symbol) { return std::isdigit(symbol) != 0; });
}

// "forward llm mb3 block 12" is "forward llm", "pipeline exchange mb0: 1 out, 1 in" is "pipeline
// exchange".
std::string FamilyOf(std::string_view op) {
  op = op.substr(0, op.find(':'));
  std::string family;
  bool is_block = false;
  while (!op.empty()) {
    const std::size_t blank = std::min(op.find(' '), op.size());
    const std::string_view word = op.substr(0, blank);
    op.remove_prefix(std::min(blank + 1, op.size()));
    const bool is_mark = word.starts_with("mb") && IsNumber(word.substr(2));
    if (is_mark || (is_block && IsNumber(word))) continue;
    is_block = word == "block";
    if (is_block) continue;
    if (!family.empty()) family += ' ';
    family += word;
  }
  return family;
}

// What one path spends on one key.
struct Spent {
  std::int64_t time_ps = 0;
  std::int64_t pieces = 0;
  std::map<std::string, std::int64_t> by_link;
  std::map<std::int32_t, std::int64_t> by_rank;
};

template <typename Key>
Key Largest(const std::map<Key, std::int64_t>& times) {
  const auto largest = std::ranges::max_element(
      times, [](const auto& a, const auto& b) { return a.second < b.second; });
  return largest == times.end() ? Key{} : largest->first;
}

using TermKey = std::tuple<std::string, std::string, std::string, std::string, std::string>;

class Ledger {
 public:
  void Add(const std::vector<PathSegment>& path, std::size_t side) {
    for (const PathSegment& piece : path) {
      const TermKey key(piece.category, piece.kind, piece.module, FamilyOf(piece.op),
                        piece.link_kind);
      Spent& spent = sums_[key][side];
      const std::int64_t time_ps = piece.end_ps - piece.start_ps;
      spent.time_ps += time_ps;
      ++spent.pieces;
      spent.by_link[piece.link] += time_ps;
      spent.by_rank[piece.rank] += time_ps;
    }
  }

  std::vector<DifferenceTerm> Terms() const {
    std::vector<DifferenceTerm> terms;
    for (const auto& [key, sides] : sums_) {
      const auto& [base, changed] = sides;
      const Spent& shown = changed.pieces > 0 ? changed : base;
      const auto& [category, kind, module, op, link_kind] = key;
      DifferenceTerm term{category,
                          kind,
                          module,
                          op,
                          link_kind,
                          Largest(shown.by_link),
                          Largest(shown.by_rank),
                          base.time_ps,
                          changed.time_ps,
                          base.pieces,
                          changed.pieces};
      if (IsOtherLinkOf(terms, term)) {
        Merge(terms.back(), term);
      } else {
        terms.push_back(std::move(term));
      }
    }
    std::ranges::stable_sort(terms, [](const DifferenceTerm& a, const DifferenceTerm& b) {
      return std::abs(a.difference_ps()) > std::abs(b.difference_ps());
    });
    return terms;
  }

 private:
  static bool IsSameOp(const DifferenceTerm& a, const DifferenceTerm& b) {
    return std::tie(a.category, a.kind, a.module, a.op) ==
           std::tie(b.category, b.kind, b.module, b.op);
  }

  // Whether the last term is the same op over another kind of link before the change, or after it:
  // what was decided by NICs is by PCIe now.
  static bool IsOtherLinkOf(const std::vector<DifferenceTerm>& terms, const DifferenceTerm& term) {
    if (terms.empty() || !IsSameOp(terms.back(), term)) return false;
    const DifferenceTerm& last = terms.back();
    return (last.base_pieces == 0 && term.changed_pieces == 0) ||
           (last.changed_pieces == 0 && term.base_pieces == 0);
  }

  static void Merge(DifferenceTerm& into, const DifferenceTerm& other) {
    const DifferenceTerm& before = into.base_pieces > 0 ? into : other;
    DifferenceTerm after = into.base_pieces > 0 ? other : into;
    after.link_kind = before.link_kind + " -> " + after.link_kind;
    after.base_ps = before.base_ps;
    after.base_pieces = before.base_pieces;
    into = std::move(after);
  }

  std::map<TermKey, std::array<Spent, 2>> sums_;
};

std::int64_t LengthOf(const std::vector<PathSegment>& path) {
  std::int64_t length = 0;
  for (const PathSegment& piece : path) length += piece.end_ps - piece.start_ps;
  return length;
}

// How many terms have to be named so that the others' differences, whatever their signs, are small.
std::size_t NumNamed(const std::vector<DifferenceTerm>& terms, double allowed_ps) {
  std::size_t named = terms.size();
  double left_ps = 0;
  while (named > 0) {
    left_ps += static_cast<double>(std::abs(terms[named - 1].difference_ps()));
    if (left_ps > allowed_ps) break;
    --named;
  }
  return named;
}

}  // namespace

DifferenceTerm StepDifference::Other() const {
  DifferenceTerm other;
  for (std::size_t index = num_named; index < terms.size(); ++index) {
    other.base_ps += terms[index].base_ps;
    other.changed_ps += terms[index].changed_ps;
    other.base_pieces += terms[index].base_pieces;
    other.changed_pieces += terms[index].changed_pieces;
  }
  return other;
}

StepDifference TakeApart(Figures base, Figures changed, double max_other) {
  ISTHMUS_CHECK(LengthOf(base.path) == base.window_ps, "the base's path is not its step");
  ISTHMUS_CHECK(LengthOf(changed.path) == changed.window_ps, "the changed path is not its step");
  StepDifference difference;
  difference.same_program = base.program_hash == changed.program_hash;
  Ledger ledger;
  ledger.Add(base.path, 0);
  ledger.Add(changed.path, 1);
  difference.terms = ledger.Terms();
  difference.base = std::move(base);
  difference.changed = std::move(changed);
  difference.num_named = NumNamed(
      difference.terms, max_other * std::abs(static_cast<double>(difference.difference_ps())));
  if (!difference.same_program) {
    difference.notes.emplace_back(
        "another program: ops of one name, without microbatch, block and sizes, are compared");
  }
  return difference;
}

}  // namespace isthmus::reports
