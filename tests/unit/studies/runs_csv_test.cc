#include "studies/runs_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace isthmus::studies {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string MessageOf(const std::string& text) {
  try {
    ParseCsv(text, "runs.csv");
  } catch (const base::Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(CsvTest, QuotedCellsHoldCommasQuotesAndLineBreaks) {
  const CsvTable table = ParseCsv("a,b\n\"x, \"\"y\"\"\",\"1\n2\"\n3,\n", "runs.csv");
  EXPECT_THAT(table.columns, ElementsAre("a", "b"));
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_THAT(table.rows[0].cells, ElementsAre("x, \"y\"", "1\n2"));
  EXPECT_THAT(table.rows[1].cells, ElementsAre("3", ""));
  EXPECT_EQ(table.rows[0].line, 2);
  EXPECT_EQ(table.rows[1].line, 4);  // the record before takes two lines
  EXPECT_EQ(table.rows[0].places[1].column, 12);
  EXPECT_EQ(table.rows[1].places[1].line, 4);
  EXPECT_EQ(table.rows[1].places[1].column, 3);
}

TEST(CsvTest, LineEndsByteOrderMarkAndBlankLinesMakeNoDifference) {
  const CsvTable table = ParseCsv(
      "\xef\xbb\xbf"
      "a,b\r\n1,2\r\n\r\n3,4",
      "runs.csv");
  EXPECT_THAT(table.columns, ElementsAre("a", "b"));
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_THAT(table.rows[1].cells, ElementsAre("3", "4"));
  EXPECT_EQ(table.rows[1].line, 4);
}

TEST(CsvTest, MistakesAreNamedWithTheirLine) {
  EXPECT_EQ(MessageOf("a,b\n1\n"),
            "runs.csv:2: error: 1 cells, but the header names 2 columns\n"
            "  hint: is the file cut off?");
  EXPECT_EQ(MessageOf("a,b\n1,2,3\n"),
            "runs.csv:2: error: 3 cells, but the header names 2 columns");
  EXPECT_THAT(MessageOf("a,b\n1,\"2\n3"),
              HasSubstr("runs.csv:2: error: a quoted cell starts here"));
  EXPECT_THAT(MessageOf("a,b\n1,\"2\"x\n"), HasSubstr("runs.csv:2: error: text follows"));
  EXPECT_THAT(MessageOf("a,b\n1,2\"\n"), HasSubstr("runs.csv:2: error: a quote stands inside"));
  EXPECT_THAT(MessageOf("a,a\n"), HasSubstr("runs.csv:1: error: column 'a' is there twice"));
  EXPECT_THAT(MessageOf(""), HasSubstr("runs.csv:1: error: the file is empty"));
  EXPECT_THAT(MessageOf(std::string("a\n\0", 3)),
              HasSubstr("runs.csv:2: error: the file is not text"));
}

TEST(RunsRowTest, CellsAreTextOrNumbers) {
  const CsvTable table = ParseCsv("a,b,c,d\n+12.5,64,,on_par\n", "runs.csv");
  const RunsRow row(table, 0);
  EXPECT_DOUBLE_EQ(*row.number("a"), 12.5);
  EXPECT_EQ(row.integer("b"), 64);
  EXPECT_EQ(row.number("c"), std::nullopt);
  EXPECT_EQ(row.text("no such column"), "");
  EXPECT_THROW(
      {
        try {
          row.number("d");
        } catch (const base::Error& error) {
          EXPECT_STREQ(error.what(), "runs.csv:2:11: error: column d: 'on_par' is not a number");
          throw;
        }
      },
      base::Error);
  EXPECT_THROW(row.integer("a"), base::Error);  // 12.5 ranks
}

TEST(DetectKindTest, HeadersOfTheThreeLayoutsAreTold) {
  const std::string folder = ISTHMUS_SOURCE_DIR "/tests/data/";
  EXPECT_EQ(DetectKind(ReadCsv(folder + "training_runs_sample.csv")), RunsKind::kTrainingRuns);
  EXPECT_EQ(DetectKind(ReadCsv(folder + "paper_runs.csv")), RunsKind::kPaperRuns);
  EXPECT_EQ(DetectKind(ReadCsv(folder + "memory_points_sample.csv")), RunsKind::kMemoryPoints);
}

TEST(DetectKindTest, AHeaderThatIsNoneOfThemSaysWhatIsMissing) {
  const auto message = [](const std::string& header) -> std::string {
    try {
      DetectKind(ParseCsv(header, "runs.csv"));
    } catch (const base::Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message("name,value\n"),
            "runs.csv:1: error: the header is of no known layout of runs\n"
            "  hint: one of these columns tells it: encoder_size, component, step_time_s");
  EXPECT_THAT(message("row_id,step_time_s\n"),
              HasSubstr("looks like training_runs, but lacks gpu, n_gpus, layers"));
}

}  // namespace
}  // namespace isthmus::studies
