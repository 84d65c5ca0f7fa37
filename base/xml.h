#pragma once

#include <string>
#include <string_view>

namespace isthmus::base {

/// The text as an element of XML, SVG or HTML may contain it: & < > by their names. Not for
/// attributes, where quotes count too.
std::string EscapedXml(std::string_view text);

}  // namespace isthmus::base
