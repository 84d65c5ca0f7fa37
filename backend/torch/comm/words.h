#pragma once

#include <exception>
#include <string>

namespace isthmus::backend {

/// What an exception says; of one of c10d or libtorch its own words, without the stack below them.
std::string WordsOf(const std::exception& error);

}  // namespace isthmus::backend
