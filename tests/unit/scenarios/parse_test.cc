#include "scenarios/internal/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/internal/yaml_text.h"

namespace isthmus::scenarios::internal {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(std::string_view text, const ParseLimits& limits = {}) {
  Diagnostics diagnostics;
  ParseYaml(text, "f", diagnostics, limits);
  try {
    diagnostics.ThrowIfAny();
  } catch (const base::ScenarioError& error) {
    return error.what();
  }
  return "none";
}

TEST(ParseTest, ValuesKeepTheirPlaces) {
  Diagnostics diagnostics;
  const Node root = ParseYaml("a:\n  b: \"x\"\n  c: [1, {d: 2}]\n", "f", diagnostics);
  ASSERT_TRUE(diagnostics.empty());
  const Place b = Locate(root, "a.b");
  EXPECT_EQ(b.node->origin.line, 2);
  EXPECT_EQ(b.node->origin.column, 6);  // after "  b: "
  EXPECT_EQ(b.key_origin.column, 3);
  EXPECT_TRUE(b.node->is_quoted);
  const Place d = Locate(root, "a.c.1.d");
  EXPECT_TRUE(d.is_exact);
  EXPECT_EQ(d.node->text, "2");
  EXPECT_EQ(d.node->origin.column, 14);
}

TEST(ParseTest, TheNearestAncestorStandsForWhatIsMissing) {
  Diagnostics diagnostics;
  const Node root = ParseYaml("a:\n  b: 1\n", "f", diagnostics);
  const Place place = Locate(root, "a.x.y");
  EXPECT_FALSE(place.is_exact);
  EXPECT_TRUE(place.node->is_map());
  EXPECT_EQ(place.key_origin.line, 1);
}

TEST(ParseTest, LimitsHold) {
  ParseLimits limits;
  limits.max_depth = 2;
  EXPECT_EQ(ErrorOf("[[1]]", limits), "none");
  EXPECT_THAT(ErrorOf("[[[1]]]", limits), HasSubstr("nested more than 2 deep"));
  limits.max_nodes = 4;  // the list counts
  EXPECT_EQ(ErrorOf("[1, 2, 3]", limits), "none");
  EXPECT_THAT(ErrorOf("[1, 2, 3, 4]", limits), HasSubstr("more than 4 values"));
  limits.max_bytes = 4;
  EXPECT_THAT(ErrorOf("12345", limits), HasSubstr("5 bytes, more than the 4"));
}

TEST(ParseTest, TextIsUtf8) {
  EXPECT_EQ(ErrorOf("a: caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"), "none");  // 2, 3, 4 bytes
  EXPECT_THAT(ErrorOf("a: \xC3"), HasSubstr("f:1:4: error: this is no text file: byte 0xC3"));
  EXPECT_THAT(ErrorOf("a: \xC0\xAF"), HasSubstr("byte 0xC0"));  // an overlong slash
}

TEST(ParseTest, AKeyThatIsThereTwiceKeepsItsFirstValue) {
  Diagnostics diagnostics;
  const Node root = ParseYaml("a: 1\na: 2\nb: 3\n", "f", diagnostics);
  EXPECT_FALSE(diagnostics.empty());
  EXPECT_EQ(root.Find("a")->text, "1");
  EXPECT_EQ(root.Find("b")->text, "3");
}

TEST(ParseTest, MergingReplacesAddsAndTakesAway) {
  Diagnostics diagnostics;
  Node base = ParseYaml("a: 1\nm: {x: 1, y: 2}\nl: [1, 2]\n", "base", diagnostics);
  MergeOver(base, ParseYaml("m: {y: 3, z: 4, x: ~}\nl: [5]\nn: 6\n", "over", diagnostics));
  EXPECT_EQ(PrintYaml(base, Comments::kNone), "a: 1\nm:\n  y: 3\n  z: 4\nl: [5]\nn: 6\n");
  EXPECT_EQ(Locate(base, "m.y").node->origin.file, "over");
  EXPECT_EQ(Locate(base, "a").node->origin.file, "base");
}

TEST(ParseTest, PrintedTextReadsBackAsTheSameTree) {
  Diagnostics diagnostics;
  Node root = Node::Map();
  for (const char* text : {"plain", "a: b", "- x", "#no", "say \"hi\"", "back\\slash", "two\nlines",
                           "true", "", " blank ", "tab\t", "caf\xC3\xA9", "bell\x07"}) {
    Node node = Node::Scalar(text);
    node.is_quoted = true;
    root.At("k" + std::to_string(root.entries.size()), {}) = node;
  }
  const Node again = ParseYaml(PrintYaml(root, Comments::kNone), "f", diagnostics);
  ASSERT_TRUE(diagnostics.empty());
  ASSERT_EQ(again.entries.size(), root.entries.size());
  for (std::size_t index = 0; index < root.entries.size(); ++index) {
    EXPECT_EQ(again.entries[index].value.text, root.entries[index].value.text);
  }
}

TEST(ParseTest, DiagnosticsAreCutAndCapped) {
  Diagnostics diagnostics;
  for (int count = 0; count < 1000; ++count) diagnostics.AddFile("f", std::string(100'000, 'x'));
  try {
    diagnostics.Throw();
  } catch (const base::ScenarioError& error) {
    EXPECT_EQ(error.diagnostics().size(), 100U);
    EXPECT_LT(std::string(error.what()).size(), 200'000U);
  }
}

}  // namespace
}  // namespace isthmus::scenarios::internal
