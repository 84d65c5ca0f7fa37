#include "traces/recorder.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "traces/tee_sink.h"

namespace isthmus::traces {
namespace {

Trace TwoEvents() {
  Trace trace;
  trace.header.scenario_name = "two events";
  trace.events = {{.rank_class = 0, .op = 0, .start_ps = 1, .end_ps = 5},
                  {.rank_class = 0, .op = 1, .issue_ps = 5, .start_ps = 6, .end_ps = 9}};
  trace.counters = {{.rank_class = 0, .time_ps = 1, .bytes = 64}};
  trace.trailer.end_ps = 9;
  return trace;
}

TEST(RecorderTest, KeepsPortionsInTheirOrder) {
  const Trace trace = TwoEvents();
  Recorder recorder;
  recorder.OnHeader(trace.header);
  recorder.OnEvents(std::span(trace.events).first(1));
  recorder.OnMemory(trace.counters);
  recorder.OnEvents(std::span(trace.events).subspan(1));
  EXPECT_FALSE(recorder.complete());
  recorder.OnTrailer(trace.trailer);
  EXPECT_TRUE(recorder.complete());
  EXPECT_EQ(recorder.trace(), trace);
}

TEST(RecorderTest, TakeLeavesItEmpty) {
  Recorder recorder;
  Replay(TwoEvents(), recorder);
  EXPECT_EQ(recorder.Take(), TwoEvents());
  EXPECT_EQ(recorder.trace(), Trace{});
  EXPECT_FALSE(recorder.complete());
}

TEST(TeeSinkTest, EverySinkReceivesTheWholeRun) {
  Recorder first;
  Recorder second;
  TeeSink tee({&first, &second});
  Replay(TwoEvents(), tee);
  EXPECT_EQ(first.trace(), TwoEvents());
  EXPECT_EQ(second.trace(), TwoEvents());
}

TEST(CategoryTest, EveryCategoryHasItsOwnName) {
  std::set<std::string> names;
  for (int index = 0; index < kNumCategories; ++index) {
    names.insert(ToText(static_cast<Category>(index)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kNumCategories));
  EXPECT_FALSE(names.contains("unknown"));
  EXPECT_STREQ(ToText(Category::kHost), "host");
  EXPECT_STREQ(ToText(static_cast<Category>(kNumCategories)), "unknown");
}

}  // namespace
}  // namespace isthmus::traces
