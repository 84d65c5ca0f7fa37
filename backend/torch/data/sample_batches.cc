#include "backend/torch/data/sample_batches.h"

#include <algorithm>

#include "backend/torch/data/sample_order.h"
#include "backend/torch/dtype.h"

namespace isthmus::backend {

BlockData SampleBatches::Get(const BatchRequest& request) {
  const bool decoder = program_.modules[request.module].module.kind == plan::ModuleKind::kDecoder;
  return decoder ? ForDecoder(request) : ForEncoder(request);
}

const Sample& SampleBatches::At(std::int64_t step, std::int64_t place) {
  if (step != step_) samples_.clear();
  step_ = step;
  auto found = samples_.find(place);
  if (found == samples_.end()) {
    const plan::Workload& workload = program_.workload;
    const std::int64_t number = step * workload.global_batch + workload.SampleAt(place);
    found = samples_.emplace(place, task_->Draw(number)).first;
  }
  return found->second;
}

BlockData SampleBatches::ForEncoder(const BatchRequest& request) {
  const plan::Module& module = program_.modules[request.module].module;
  const std::size_t edge = program_.EdgeFrom(request.module);
  const EncoderShare share =
      EncoderSpans(program_, request.module, request.rank, request.microbatch);
  std::vector<at::Tensor> parts;
  for (const SampleSpan& span : share.spans) {
    const at::Tensor& patches = At(request.step, span.sample).patches[edge];
    const std::int64_t first = span.span * module.span_tokens;
    parts.push_back(
        patches.narrow(0, first, std::min(module.span_tokens, patches.size(0) - first)));
  }
  BlockData data;
  const std::int64_t width =
      module.input_width > 0 ? module.input_width : module.transformer.hidden;
  const at::Tensor lane = parts.empty() ? at::zeros({0, width}, at::kFloat) : at::cat(parts);
  data.num_tokens = lane.size(0);
  data.patches = lane.slice(0, share.token_begin, share.token_end)
                     .to(ToTorch(plan::ActivationType(module.settings)))
                     .contiguous();
  return data;
}

BlockData SampleBatches::ForDecoder(const BatchRequest& request) {
  std::vector<at::Tensor> tokens;
  std::vector<at::Tensor> labels;
  std::vector<at::Tensor> masks;
  std::vector<std::vector<at::Tensor>> placeholders(program_.edges.size());
  for (const std::int64_t place :
       DecoderSamples(program_, request.module, request.rank, request.microbatch)) {
    const Sample& sample = At(request.step, place);
    tokens.push_back(sample.tokens);
    labels.push_back(sample.labels);
    masks.push_back(sample.loss_mask);
    for (std::size_t edge = 0; edge < placeholders.size(); ++edge) {
      placeholders[edge].push_back(sample.placeholders[edge]);
    }
  }
  BlockData data;
  data.tokens = at::stack(tokens);
  data.labels = at::stack(labels);
  data.loss_mask = at::stack(masks);
  for (const auto& edge : placeholders) data.placeholders.push_back(at::stack(edge));
  data.num_tokens = data.tokens.numel();
  return data;
}

}  // namespace isthmus::backend
