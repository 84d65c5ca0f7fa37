#pragma once

#include <optional>
#include <string>

#include "studies/validate.h"

// Figures as cells of tables.
namespace isthmus::studies::internal {

// "" for nothing.
std::string Number(const std::optional<double>& value, int digits);
std::string Percent(const std::optional<double>& fraction);        // without its sign
std::string SignedPercent(const std::optional<double>& fraction);  // "+1.2"
std::string Range(double low, double high);                        // "1.234 - 1.301"

// Whether the measured time lies in the row's 80 % band.
bool IsInBand(const RowResult& row);
// Of the rows with a time; nothing where no band was asked for.
std::optional<double> ShareInBand(const RowGroup& group);

}  // namespace isthmus::studies::internal
