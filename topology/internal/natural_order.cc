#include "topology/internal/natural_order.h"

#include <cctype>
#include <cstddef>

namespace isthmus::topology::internal {
namespace {

bool StartsWithDigit(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) != 0;
}

// Without leading zeros.
std::string_view TakeNumber(std::string_view& text) {
  while (text.size() > 1 && text.front() == '0' && StartsWithDigit(text.substr(1))) {
    text.remove_prefix(1);
  }
  std::size_t length = 0;
  while (StartsWithDigit(text.substr(length))) ++length;
  const std::string_view number = text.substr(0, length);
  text.remove_prefix(length);
  return number;
}

}  // namespace

bool NaturalOrder::operator()(std::string_view a, std::string_view b) const {
  const std::string_view all_of_a = a;
  const std::string_view all_of_b = b;
  while (!a.empty() && !b.empty()) {
    if (StartsWithDigit(a) && StartsWithDigit(b)) {
      const std::string_view number_a = TakeNumber(a);
      const std::string_view number_b = TakeNumber(b);
      if (number_a.size() != number_b.size()) return number_a.size() < number_b.size();
      if (number_a != number_b) return number_a < number_b;
      continue;
    }
    if (a.front() != b.front()) return a.front() < b.front();
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  if (a.empty() != b.empty()) return a.empty();
  return all_of_a < all_of_b;
}

}  // namespace isthmus::topology::internal
