#include "backend/torch/data/task.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "backend/torch/data/internal/render.h"
#include "backend/torch/data/internal/words.h"
#include "base/error.h"
#include "base/random.h"

namespace isthmus::backend {
namespace {

base::RandomStream StreamOf(const TaskOptions& options, std::int64_t index) {
  return {options.seed, fmt::format("data.sample.{}", index)};
}

at::Tensor EmptyPatches(const SampleShape::Encoder& encoder, std::int64_t index) {
  return at::zeros({encoder.TokensOf(index), encoder.width}, at::kFloat);
}

std::span<float> ValuesOf(const at::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

at::Tensor ToTensor(const std::vector<std::int64_t>& values) {
  return at::tensor(values, at::TensorOptions(at::kLong));
}

/// A token stream while it is written: positions behind `length` are dropped.
struct Stream {
  explicit Stream(const SampleShape& shape)
      : length(static_cast<std::size_t>(shape.sequence_length)),
        placeholders(shape.encoders.size(), std::vector<std::int64_t>(length, 0)) {}

  void Add(std::int64_t token) { tokens.push_back(token); }
  void AddAnswer(std::int64_t token) {
    // The position in front predicts it.
    if (tokens.size() <= length) counts.push_back(tokens.size() - 1);
    Add(token);
  }

  Sample ToSample() {
    tokens.resize(std::max(tokens.size(), length + 1), internal::kPad);
    const std::vector<std::int64_t> labels(
        tokens.begin() + 1, tokens.begin() + static_cast<std::ptrdiff_t>(length) + 1);
    tokens.resize(length);
    std::vector<std::int64_t> mask(length, 0);
    for (const std::size_t position : counts) mask[position] = 1;
    Sample sample;
    sample.tokens = ToTensor(tokens);
    sample.labels = ToTensor(labels);
    sample.loss_mask = ToTensor(mask).to(at::kBool);
    for (const auto& set : placeholders) sample.placeholders.push_back(ToTensor(set).to(at::kBool));
    return sample;
  }

  std::size_t length;
  std::vector<std::int64_t> tokens;
  std::vector<std::size_t> counts;
  std::vector<std::vector<std::int64_t>> placeholders;
};

class Captions final : public Task {
 public:
  Captions(SampleShape shape, const TaskOptions& options)
      : shape_(std::move(shape)), options_(options) {}

  Sample Draw(std::int64_t index) const override {
    base::RandomStream random = StreamOf(options_, index);
    const bool text_only =
        std::all_of(shape_.encoders.begin(), shape_.encoders.end(),
                    [&](const auto& encoder) { return encoder.TokensOf(index) == 0; });
    return text_only ? Count(random, index) : Describe(random, index);
  }

 private:
  Sample Count(base::RandomStream& random, std::int64_t index) const {
    Stream stream(shape_);
    stream.Add(internal::kBegin);
    stream.Add(internal::kCount);
    std::int64_t number = random.UniformInt(0, 9);
    stream.Add(internal::kFirstNumber + number);
    while (stream.tokens.size() <= stream.length) {
      number = (number + 1) % 10;
      stream.AddAnswer(internal::kFirstNumber + number);
    }
    Sample sample = stream.ToSample();
    for (const auto& encoder : shape_.encoders)
      sample.patches.push_back(EmptyPatches(encoder, index));
    return sample;
  }

  Sample Describe(base::RandomStream& random, std::int64_t index) const {
    Stream stream(shape_);
    std::vector<at::Tensor> patches;
    std::vector<std::int64_t> answer;
    stream.Add(internal::kBegin);
    for (std::size_t edge = 0; edge < shape_.encoders.size(); ++edge) {
      const SampleShape::Encoder& encoder = shape_.encoders[edge];
      const bool sound = encoder.kind == plan::ModuleKind::kAudio;
      for (std::int64_t token = 0; token < encoder.LlmTokensOf(index); ++token) {
        stream.placeholders[edge][stream.tokens.size()] = 1;
        stream.Add(sound ? internal::kSound : internal::kImage);
      }
      patches.push_back(EmptyPatches(encoder, index));
      const std::int64_t tokens = encoder.TokensOf(index);
      for (std::int64_t first = 0; first < tokens; first += encoder.span) {
        const std::int64_t size = std::min(encoder.span, tokens - first);
        const auto values = ValuesOf(patches.back())
                                .subspan(static_cast<std::size_t>(first * encoder.width),
                                         static_cast<std::size_t>(size * encoder.width));
        const auto words = sound ? internal::DrawClip(random, size, encoder.width, values)
                                 : internal::DrawImage(random, size, encoder.width, values);
        answer.insert(answer.end(), words.begin(), words.end());
      }
    }
    stream.Add(internal::kDescribe);
    for (const std::int64_t word : answer) stream.AddAnswer(word);
    stream.AddAnswer(internal::kEnd);
    Sample sample = stream.ToSample();
    sample.patches = std::move(patches);
    return sample;
  }

  SampleShape shape_;
  TaskOptions options_;
};

class Random final : public Task {
 public:
  Random(SampleShape shape, const TaskOptions& options)
      : shape_(std::move(shape)), options_(options) {}

  Sample Draw(std::int64_t index) const override {
    base::RandomStream random = StreamOf(options_, index);
    Stream stream(shape_);
    stream.Add(random.UniformInt(0, shape_.vocabulary - 1));
    while (stream.tokens.size() <= stream.length) {
      stream.AddAnswer(random.UniformInt(0, shape_.vocabulary - 1));
    }
    std::size_t position = 0;
    std::vector<at::Tensor> patches;
    for (std::size_t edge = 0; edge < shape_.encoders.size(); ++edge) {
      patches.push_back(EmptyPatches(shape_.encoders[edge], index));
      for (float& value : ValuesOf(patches.back())) {
        value = static_cast<float>(random.Normal(0.0, 1.0));
      }
      for (std::int64_t token = 0; token < shape_.encoders[edge].LlmTokensOf(index); ++token) {
        stream.placeholders[edge][position++] = 1;
      }
    }
    Sample sample = stream.ToSample();
    sample.patches = std::move(patches);
    return sample;
  }

 private:
  SampleShape shape_;
  TaskOptions options_;
};

void CheckRoom(std::string_view name, const SampleShape& shape) {
  // Begin, placeholders, the question, and at least one word of the answer.
  const std::int64_t needed = shape.MostPlaceholders() + (name == "captions" ? 3 : 0);
  if (shape.sequence_length < needed) {
    throw base::Error(
        fmt::format("samples of {} tokens have no room for {} placeholders and an answer of the "
                    "task {}\n  hint: use a sequence_length of at least {}",
                    shape.sequence_length, shape.MostPlaceholders(), name, needed));
  }
  if (name == "captions" && shape.vocabulary < internal::kNumWords) {
    throw base::Error(fmt::format("the task captions has {} words, the decoder's vocabulary {}",
                                  static_cast<std::int64_t>(internal::kNumWords),
                                  shape.vocabulary));
  }
}

}  // namespace

std::unique_ptr<Task> MakeTask(std::string_view name, const SampleShape& shape,
                               const TaskOptions& options) {
  if (name != "captions" && name != "random") {
    throw base::Error(fmt::format("no task {}\n  hint: there are captions and random", name));
  }
  CheckRoom(name, shape);
  if (name == "captions") return std::make_unique<Captions>(shape, options);
  return std::make_unique<Random>(shape, options);
}

}  // namespace isthmus::backend
