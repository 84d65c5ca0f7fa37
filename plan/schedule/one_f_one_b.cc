#include "plan/schedule/one_f_one_b.h"

#include <algorithm>

namespace isthmus::plan {
namespace {

PipelineCall Forward(int microbatch) {
  return {.kind = PipelineCall::Kind::kForward, .turn = {microbatch}};
}
PipelineCall Backward(int microbatch) {
  return {.kind = PipelineCall::Kind::kBackward, .turn = {microbatch}};
}

}  // namespace

std::vector<PipelineCall> OneForwardOneBackward(int warmup_depth, int num_microbatches) {
  std::vector<PipelineCall> calls;
  const int warmup = std::min(warmup_depth, num_microbatches);
  for (int microbatch = 0; microbatch < warmup; ++microbatch) {
    calls.push_back({.receive_forward = {microbatch}});
    calls.push_back(Forward(microbatch));
    calls.push_back({.send_forward = {microbatch}});
  }
  if (warmup < num_microbatches) calls.push_back({.receive_forward = {warmup}});
  for (int forward = warmup; forward < num_microbatches; ++forward) {
    const int backward = forward - warmup;
    calls.push_back(Forward(forward));
    calls.push_back({.send_forward = {forward}, .receive_backward = {backward}});
    calls.push_back(Backward(backward));
    const int next = forward + 1 < num_microbatches ? forward + 1 : -1;
    calls.push_back({.receive_forward = {next}, .send_backward = {backward}});
  }
  for (int backward = num_microbatches - warmup; backward < num_microbatches; ++backward) {
    calls.push_back({.receive_backward = {backward}});
    calls.push_back(Backward(backward));
    calls.push_back({.send_backward = {backward}});
  }
  return calls;
}

}  // namespace isthmus::plan
