// The text forms of one small trace, whole.

#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file_io.h"
#include "tests/support/test_folder.h"
#include "tests/unit/traces/small_trace.h"
#include "traces/trace_file.h"

namespace isthmus::traces {
namespace {

std::string Written(const char* name) {
  const auto path = tests::TestFolder() / name;
  Replay(SmallTrace(), *OpenTraceFile(path));
  return base::ReadFile(path);
}

// Microseconds: 1 ns is 0.001, 0.5 ns 0.0005. Sends (track 2) come before what they meet.
constexpr const char* kChrome = R"({"displayTimeUnit":"ns","otherData":{"kind":"predicted",)"
                                R"("scenario":"small","scenario_hash":"","profile":"",)"
                                R"("commit":"","machine":"","seed":0,"num_ranks":2},"traceEvents":[
{"ph":"M","name":"process_name","pid":0,"tid":0,"args":{"name":"run"}},
{"ph":"M","name":"process_sort_index","pid":0,"tid":0,"args":{"sort_index":0}},
{"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"rank 0: llm stage 0"}},
{"ph":"M","name":"process_sort_index","pid":1,"tid":0,"args":{"sort_index":1}},
{"ph":"M","name":"process_name","pid":2,"tid":0,"args":{"name":"rank 1: llm stage 1"}},
{"ph":"M","name":"process_sort_index","pid":2,"tid":0,"args":{"sort_index":2}},
{"ph":"M","name":"thread_name","pid":0,"tid":1,"args":{"name":"steps"}},
{"ph":"M","name":"thread_sort_index","pid":0,"tid":1,"args":{"sort_index":0}},
{"ph":"X","name":"step 0","cat":"step","pid":0,"tid":1,"ts":0.000000,"dur":0.009500,"args":{}},
{"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"p2p send"}},
{"ph":"M","name":"thread_sort_index","pid":1,"tid":2,"args":{"sort_index":4}},
{"ph":"X","name":"send forward","cat":"pipeline_comm","pid":1,"tid":2,"ts":0.006000,"dur":0.002000,"args":{"module":"llm","op":1,"transfer_bytes":64,"peer_rank":1}},
{"ph":"s","name":"message","cat":"message","id":2,"pid":1,"tid":2,"ts":0.006000},
{"ph":"M","name":"thread_name","pid":1,"tid":3,"args":{"name":"compute"}},
{"ph":"M","name":"thread_sort_index","pid":1,"tid":3,"args":{"sort_index":0}},
{"ph":"X","name":"forward","cat":"compute","pid":1,"tid":3,"ts":0.001000,"dur":0.004000,"args":{"module":"llm","action":"forward","microbatch":0,"model_flops":2500000000.0,"op":0}},
{"ph":"X","name":"qkv","cat":"compute","pid":1,"tid":3,"ts":0.001000,"dur":0.002000,"args":{}},
{"ph":"X","name":"out","cat":"tp_comm","pid":1,"tid":3,"ts":0.003000,"dur":0.002000,"args":{}},
{"ph":"M","name":"thread_name","pid":2,"tid":4,"args":{"name":"p2p receive"}},
{"ph":"M","name":"thread_sort_index","pid":2,"tid":4,"args":{"sort_index":5}},
{"ph":"X","name":"receive forward","cat":"pipeline_comm","pid":2,"tid":4,"ts":0.006000,"dur":0.002000,"args":{"module":"llm","wait_ns":6,"op":0,"transfer_bytes":64,"peer_rank":0}},
{"ph":"f","bp":"e","name":"message","cat":"message","id":2,"pid":2,"tid":4,"ts":0.006000},
{"ph":"M","name":"thread_name","pid":2,"tid":5,"args":{"name":"compute"}},
{"ph":"M","name":"thread_sort_index","pid":2,"tid":5,"args":{"sort_index":0}},
{"ph":"X","name":"backward","cat":"compute","pid":2,"tid":5,"ts":0.008000,"dur":0.001500,"args":{"module":"llm","action":"backward","microbatch":0,"model_flops":2500000000.0,"op":1}},
{"ph":"X","name":"straggler wait","cat":"straggler","pid":1,"tid":3,"ts":0.005000,"dur":0.001000,"args":{}},
{"ph":"C","name":"memory","pid":2,"tid":0,"ts":0.006000,"args":{"bytes":64}}
]}
)";

TEST(ChromeWriterTest, WritesTheSmallTrace) {
  const std::string text = Written("small.json");
  EXPECT_EQ(text, kChrome);
  EXPECT_TRUE(nlohmann::json::accept(text));
}

TEST(CsvWriterTest, WritesTheSmallTrace) {
  EXPECT_EQ(
      Written("small.csv"),
      "rank,num_ranks,role,lane,op,inner,name,kind,action,category,module,chunk,microbatch,"
      "step,communicator,peer_rank,bytes,model_flops,hardware_flops,issue_ps,start_ps,end_ps\n"
      "0,1,llm stage 0,compute,0,0,forward,compute,forward,compute,llm,0,0,0,,,0,2500000000,"
      "3000000000,1000,1000,5000\n"
      "0,1,llm stage 0,compute,0,1,qkv,piece,forward,compute,llm,0,0,0,,,,,,1000,1000,"
      "3000\n"
      "0,1,llm stage 0,compute,0,4,out,piece,forward,tp_comm,llm,0,0,0,,,,,,3000,3000,"
      "5000\n"
      "0,1,llm stage 0,p2p,1,0,send forward,p2p,,pipeline_comm,llm,0,,0,,,0,0,0,6000,6000,"
      "8000\n"
      "0,1,llm stage 0,p2p,1,1,send forward,transfer,send,pipeline_comm,llm,0,,0,,1,64,,,6000,"
      "6000,8000\n"
      "1,1,llm stage 1,p2p,0,0,receive forward,p2p,,pipeline_comm,llm,0,,0,,,0,0,0,6000,6000,"
      "8000\n"
      "1,1,llm stage 1,p2p,0,1,receive forward,transfer,receive,pipeline_comm,llm,0,,0,,0,64,,"
      ",0,6000,8000\n"
      "1,1,llm stage 1,compute,1,0,backward,compute,backward,compute,llm,0,0,0,,,0,2500000000,"
      "3000000000,8000,8000,9500\n");
}

TEST(CsvWriterTest, QuotesWhatNeedsIt) {
  const auto path = tests::TestFolder() / "quoted.csv";
  Trace trace = SmallTrace();
  trace.events.resize(1);
  trace.header.roles[0].name = "vision, \"small\"";
  Replay(trace, *OpenTraceFile(path));
  EXPECT_NE(base::ReadFile(path).find("0,1,\"vision, \"\"small\"\"\",compute,"), std::string::npos);
}

TEST(JsonLinesWriterTest, EveryLineIsAnObject) {
  const std::string text = Written("small.jsonl");
  std::vector<nlohmann::json> lines;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    lines.push_back(nlohmann::json::parse(text.substr(start, end - start)));
    start = end + 1;
  }
  // Header, 8 events, 1 change of memory, trailer.
  ASSERT_EQ(lines.size(), 11U);
  const nlohmann::json& header = lines.front()["header"];
  EXPECT_EQ(header["scenario_name"], "small");
  EXPECT_EQ(header["roles"][0]["ops"][0]["inner_shares"][1]["category"], "tp_comm");
  EXPECT_EQ(header["roles"][1]["ops"][0]["transfers"][0]["bytes"], 64);
  EXPECT_EQ(header["classes"][1]["peers"], nlohmann::json::array({0}));
  EXPECT_EQ(lines[8].dump(),
            R"({"event":{"end_ps":9500,"inner":0,"issue_ps":8000,"op":1,"rank_class":1,)"
            R"("start_ps":8000}})");
  EXPECT_EQ(lines[9].dump(), R"({"memory":{"bytes":64,"rank_class":1,"time_ps":6000}})");
  EXPECT_EQ(lines[10]["trailer"]["waits"][0]["straggler"], true);
  EXPECT_EQ(lines[10]["trailer"]["slowdowns"][0]["duration_ps"], 500);
  EXPECT_EQ(lines[10]["trailer"]["end_ps"], 9500);
}

TEST(JsonLinesWriterTest, TextThatIsNoUtf8StaysJson) {
  const auto path = tests::TestFolder() / "bytes.jsonl";
  Trace trace = SmallTrace();
  trace.header.machine = "node \xFF";
  Replay(trace, *OpenTraceFile(path));
  const std::string text = base::ReadFile(path);
  EXPECT_TRUE(nlohmann::json::accept(text.substr(0, text.find('\n'))));
}

}  // namespace
}  // namespace isthmus::traces
