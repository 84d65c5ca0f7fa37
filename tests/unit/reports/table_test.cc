#include "reports/table.h"

#include <gtest/gtest.h>

namespace isthmus::reports {
namespace {

Table Example() {
  Table table({{"run"}, {"error", Align::kRight}});
  table.AddRow({"T1192", "-1.5 %"});
  table.AddRow({"vision → llm", "12.0 %"});
  table.AddRule();
  table.AddRow({"median", "2.0 %"});
  return table;
}

TEST(TableTest, AlignsColumnsByCharactersAndEndsLinesClean) {
  EXPECT_EQ(Example().RenderText(),
            "  run            error\n"
            "  ────────────  ──────\n"
            "  T1192         -1.5 %\n"
            "  vision → llm  12.0 %\n"
            "  ────────────  ──────\n"
            "  median         2.0 %\n");
  Table ragged({{"a"}, {"b"}});
  ragged.AddRow({"x", ""});
  EXPECT_EQ(ragged.RenderText({.indent = 0, .gap = 1, .titles = false}), "x\n");
}

TEST(TableTest, ColourSequencesTakeNoWidth) {
  EXPECT_EQ(DisplayWidth("\x1b[1;31mno\x1b[0m"), 2U);
  Table table({{"a"}, {"b"}});
  table.AddRow({"\x1b[1mx\x1b[0m", "1"});
  table.AddRow({"xyz", "2"});
  EXPECT_EQ(table.RenderText({.indent = 0, .gap = 1, .titles = false}),
            "\x1b[1mx\x1b[0m   1\nxyz 2\n");
}

TEST(TableTest, CsvQuotesWhatNeedsIt) {
  Table table({{"id"}, {"why"}});
  table.AddRow({"1", "no layout, no \"tp\""});
  table.AddRow({"2", "two\nlines"});
  EXPECT_EQ(table.RenderCsv(), "id,why\n1,\"no layout, no \"\"tp\"\"\"\n2,\"two\nlines\"\n");
}

TEST(TableTest, MarkdownEscapesBarsAndKeepsAlignment) {
  Table table({{"id"}, {"n", Align::kRight}});
  table.AddRow({"a|b", "1"});
  EXPECT_EQ(table.RenderMarkdown(), "| id | n |\n| --- | ---: |\n| a\\|b | 1 |\n");
}

TEST(TableTest, ShortensAtCharacters) {
  EXPECT_EQ(Shorten("abc", 3), "abc");
  EXPECT_EQ(Shorten("a→cd", 3), "a→…");
  EXPECT_EQ(Shorten("abcd", 1), "…");
  EXPECT_EQ(Shorten("abcd", 0), "");
}

TEST(TableDeathTest, RowsOfAnotherWidthAreAMistake) {
  Table table({{"a"}, {"b"}});
  EXPECT_DEATH(table.AddRow({"x"}), "a row of 1 cells in a table of 2 columns");
}

}  // namespace
}  // namespace isthmus::reports
