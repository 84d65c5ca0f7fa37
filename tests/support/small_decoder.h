#pragma once

#include <string>

/// A scenario that several tests of studies run.
namespace isthmus::tests {

/// 16 layers of 4096 on H100s, 64 samples of 4096 tokens; `layout` as in "tp: 2, pp: 4, dp: 8".
inline std::string SmallDecoder(const std::string& layout) {
  return R"(
cluster: h100-dgx
workload: {sequence_length: 4096, global_batch: 64}
modules:
  llm:
    model: {kind: decoder, name: small, source: made up, num_layers: 16, hidden: 4096,
            ffn_hidden: 16384, num_heads: 32, vocab_size: 32000}
    layout: {)" +
         layout + "}\n";
}

}  // namespace isthmus::tests
