#include "traces/internal/trace_index.h"

#include <functional>

#include <gtest/gtest.h>

#include "tests/unit/traces/small_trace.h"

namespace isthmus::traces::internal {
namespace {

std::string HeaderDefect(const std::function<void(Header&)>& spoil) {
  Header header = SmallTrace().header;
  spoil(header);
  return TraceIndex(header).DefectOfHeader().value_or("none");
}

TEST(TraceIndexTest, TheSmallTraceHasNoDefect) {
  EXPECT_EQ(HeaderDefect([](Header&) {}), "none");
}

TEST(TraceIndexTest, NamesWhatAnOpOfTheHeaderNamesInVain) {
  const auto spoil_op = [](const std::function<void(OpRecord&)>& spoil) {
    return HeaderDefect([&](Header& header) { spoil(header.roles[0].ops[1]); });
  };
  EXPECT_EQ(spoil_op([](OpRecord& op) { op.lane = 2; }), "names lane 2, and there are 2");
  EXPECT_EQ(spoil_op([](OpRecord& op) { op.module = 1; }), "names module 1, and there are 1");
  EXPECT_EQ(spoil_op([](OpRecord& op) { op.group = 1; }), "names communicator 0, and there are 0");
  EXPECT_EQ(spoil_op([](OpRecord& op) {
              op.dependencies = {{2, 0}};
            }),
            "names op 2, and there are 2");
  EXPECT_EQ(spoil_op([](OpRecord& op) {
              op.dependencies = {{0, 1}};
            }),
            "names transfer 0, and there are 0");
  EXPECT_EQ(spoil_op([](OpRecord& op) { op.block = 2; }), "names block 1, and there are 1");
  EXPECT_EQ(spoil_op([](OpRecord& op) { op.transfers[0].peer = 1; }),
            "has 1 peers of a rank class whose role talks to 2");
}

TEST(TraceIndexTest, NamesWhatAClassNamesInVain) {
  const auto spoil_class = [](const std::function<void(RankClass&)>& spoil) {
    return HeaderDefect([&](Header& header) { spoil(header.classes[1]); });
  };
  EXPECT_EQ(spoil_class([](RankClass& entry) { entry.role = 2; }), "names role 2, and there are 2");
  EXPECT_EQ(spoil_class([](RankClass& entry) { entry.peers = {2}; }),
            "names rank class 2, and there are 2");
  EXPECT_EQ(spoil_class([](RankClass& entry) { entry.groups = {0}; }),
            "has 1 communicators of a rank class whose role has 0");
  EXPECT_EQ(HeaderDefect([](Header& header) {
              header.groups = {{0, 9}};
            }),
            "names rank class 9, and there are 2");
}

TEST(TraceIndexTest, NamesWhatEventsNameInVain) {
  const Header header = SmallTrace().header;
  const TraceIndex index(header);
  const auto defect = [&](const Event& event) { return index.DefectOf(event).value_or("none"); };
  EXPECT_EQ(defect({.rank_class = 2}), "names rank class 2, and there are 2");
  EXPECT_EQ(defect({.rank_class = 1, .op = 2}), "names op 2, and there are 2");
  EXPECT_EQ(defect({.rank_class = 0, .op = 1, .inner = 2}), "names transfer 1, and there are 1");
  EXPECT_EQ(defect({.start_ps = 5, .end_ps = 4}),
            "has an event that ends at 4 ps, before its start at 5 ps");
  // Pieces of a block are not counted in the header.
  EXPECT_EQ(defect({.rank_class = 0, .op = 0, .inner = 7}), "none");
  EXPECT_EQ(index.DefectOf(MemoryCounter{.rank_class = 2}).value_or("none"),
            "names rank class 2, and there are 2");
  Trailer trailer;
  trailer.waits = {{.rank_class = 0, .op = 3}};
  EXPECT_EQ(index.DefectOf(trailer).value_or("none"), "names op 3, and there are 2");
  trailer = {};
  trailer.slowdowns = {{.rank_class = 2, .duration_ps = 1}};
  EXPECT_EQ(index.DefectOf(trailer).value_or("none"), "names rank class 2, and there are 2");
}

TEST(TraceIndexTest, APieceIsKernelsAndACollective) {
  const Header header = SmallTrace().header;
  const TraceIndex index(header);
  const auto piece = [&](std::uint32_t op, std::uint32_t inner) {
    return index.PieceOf({.rank_class = 0, .op = op, .inner = inner});
  };
  EXPECT_EQ(piece(0, 1), (PieceRecord{"qkv", Category::kCompute}));
  EXPECT_EQ(piece(0, 3), (PieceRecord{"out", Category::kCompute}));
  EXPECT_EQ(piece(0, 4), (PieceRecord{"out", Category::kTpComm}));
  // Beyond the block's list.
  EXPECT_EQ(piece(0, 5), (PieceRecord{"piece 2", Category::kCompute}));
}

}  // namespace
}  // namespace isthmus::traces::internal
