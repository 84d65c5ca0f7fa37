#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/program/program.h"

/// Words that the printed forms of a program share.
namespace isthmus::plan::internal {

/// "0-3, 8-11", "0, 4, 8 ... 60 (16)" for ranks an equal distance apart; beyond `most` runs the
/// rest is a number: "0, 5, 9 and 61 more". Needs ascending ranks.
std::string RankList(const std::vector<base::Rank>& ranks, std::size_t most = 4);
/// The same in the order of the list: members of a communicator.
std::string MemberList(const std::vector<base::Rank>& members, std::size_t most = 8);
/// "1.20 B", "305 M", "12.3 k": a number of parameters or tokens, for people.
std::string ShortCount(std::int64_t count);
/// "vision->llm".
std::string EdgeName(const Program& program, std::size_t edge);

/// Rows of cells as lines with columns below each other, indented by `indent`. The first row is the
/// head. Columns named in `right` have their text at the right.
std::string Columns(const std::vector<std::vector<std::string>>& rows, const std::string& indent,
                    const std::vector<std::size_t>& right = {});

}  // namespace isthmus::plan::internal
