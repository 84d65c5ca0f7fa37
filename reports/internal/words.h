#pragma once

#include <cstdint>
#include <string>

/// Figures in words for people: names without underscores, rates and counts with their units.
namespace isthmus::reports {

/// "tp_comm" -> "tensor parallel", "exposed_comm" -> "exposed communication"; others lose their
/// underscores only.
std::string KindInWords(const std::string& name);
/// "non_colocated" -> "non-colocated".
std::string PlacementInWords(const std::string& placement);
std::string VerdictInWords(const std::string& verdict);
/// "ranks 0-3,839", "rank 7".
std::string RankRange(std::int64_t first, std::int64_t count);
/// "120 B", "6.3 M", "" for 0.
std::string ParametersInWords(double parameters);
/// "414.8" below a thousand, "1,234,567" from there on.
std::string RateInWords(double per_second);

}  // namespace isthmus::reports
