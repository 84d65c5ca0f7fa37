#include "plan/layout/layout.h"

#include <fmt/format.h>

namespace isthmus::plan {

std::string ToText(const Layout& layout) {
  std::string text = fmt::format("TP{}", layout.tp);
  if (layout.cp > 1) {
    text += fmt::format(" CP{}", layout.cp);
  }
  text += fmt::format(" PP{}", layout.pp);
  if (layout.vpp > 1) {
    text += fmt::format(" VPP{}", layout.vpp);
  }
  text += fmt::format(" DP{}", layout.dp);
  if (layout.ep > 1) {
    text += fmt::format(" EP{}", layout.ep);
  }
  if (layout.etp > 1) {
    text += fmt::format(" ETP{}", layout.etp);
  }
  return text;
}

}  // namespace isthmus::plan
