#include "sim/engine/event_heap.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace isthmus::sim {
namespace {

TEST(EventHeap, GivesEarliestFirst) {
  EventHeap<int> heap;
  for (const int time : {50, 10, 40, 20, 30}) heap.Push(time, time);
  std::vector<int> order;
  while (!heap.empty()) order.push_back(heap.Pop().payload);
  EXPECT_EQ(order, (std::vector<int>{10, 20, 30, 40, 50}));
}

TEST(EventHeap, BreaksTiesByOrderOfPush) {
  EventHeap<int> heap;
  // More than one level of a 4-ary heap, all at one time.
  for (int item = 0; item < 100; ++item) heap.Push(7, item);
  for (int item = 0; item < 100; ++item) EXPECT_EQ(heap.Pop().payload, item);
}

TEST(EventHeap, KeepsPushOrderOfTiesAcrossPops) {
  EventHeap<char> heap;
  heap.Push(5, 'a');
  heap.Push(3, 'x');
  EXPECT_EQ(heap.Pop().payload, 'x');
  heap.Push(5, 'b');
  heap.Push(4, 'y');
  EXPECT_EQ(heap.Pop().payload, 'y');
  EXPECT_EQ(heap.Pop().payload, 'a');
  EXPECT_EQ(heap.Pop().payload, 'b');
  EXPECT_TRUE(heap.empty());
}

TEST(EventHeap, SortsAsStableSortDoes) {
  base::RandomStream random(11, "heap");
  for (int round = 0; round < 50; ++round) {
    EventHeap<int> heap;
    std::vector<std::pair<std::int64_t, int>> expected;
    const int size = static_cast<int>(random.UniformInt(0, 300));
    for (int item = 0; item < size; ++item) {
      const std::int64_t time = random.UniformInt(0, 20);
      heap.Push(time, item);
      expected.emplace_back(time, item);
    }
    std::stable_sort(expected.begin(), expected.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [time, item] : expected) {
      const auto entry = heap.Pop();
      ASSERT_EQ(entry.time_ps, time);
      ASSERT_EQ(entry.payload, item);
    }
    EXPECT_TRUE(heap.empty());
  }
}

}  // namespace
}  // namespace isthmus::sim
