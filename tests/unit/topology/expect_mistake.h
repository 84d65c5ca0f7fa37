#pragma once

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "topology/cluster.h"

namespace isthmus::topology {

/// Expects that the spec can't be built, and that the error says `text` and gives a hint.
inline void ExpectMistake(const ClusterSpec& spec, const std::string& text) {
  try {
    const Cluster cluster(spec);
    ADD_FAILURE() << text;
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr(text));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("\n  hint: ")) << text;
  }
}

}  // namespace isthmus::topology
