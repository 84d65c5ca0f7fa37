#include "base/xml.h"

#include <gtest/gtest.h>

namespace isthmus::base {
namespace {

TEST(EscapedXmlTest, NamesWhatWouldBeMarkup) {
  EXPECT_EQ(EscapedXml("a < b && c > \"d\""), "a &lt; b &amp;&amp; c &gt; \"d\"");
  EXPECT_EQ(EscapedXml(""), "");
}

}  // namespace
}  // namespace isthmus::base
