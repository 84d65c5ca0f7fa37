#include "backend/torch/measure/kernel_cases.h"

#include <torch/csrc/autograd/autograd.h>

#include <utility>

#include <fmt/format.h>

#include "backend/torch/modules/attention_core.h"

namespace isthmus::backend {
namespace {

constexpr std::int64_t kHeads = 4;
constexpr std::int64_t kNormWidth = 512;
constexpr std::int64_t kClasses = 1024;
// What plan counts, at 4 bytes an element (docs/models/layers.md): a logit's loss both ways, an
// owned parameter's Adam.
constexpr std::int64_t kLossBytes = 68;
constexpr std::int64_t kAdamBytes = 34;

using Type = at::ScalarType;
const char* NameOf(Type type) { return type == at::kBFloat16 ? "bf16" : "fp32"; }

KernelCase Product(std::int64_t m, std::int64_t n, std::int64_t k, at::TensorOptions options) {
  const char* type = NameOf(options.dtype().toScalarType());
  return {.table = fmt::format("gemm.{}", type),
          .point = fmt::format("m{}_n{}_k{}", m, n, k),
          .times = 3,
          .prepare = [=]() -> std::function<void()> {
            const at::Tensor x = at::randn({m, k}, options);
            const at::Tensor w = at::randn({n, k}, options);
            const at::Tensor x_of_input = at::randn({k, n}, options);
            const at::Tensor dy = at::randn({k, m}, options);
            const at::Tensor sum = at::zeros({m, n}, options);
            return [=] {
              x.mm(w.t());
              x.mm(x_of_input);
              sum.addmm_(dy.t(), x_of_input);
            };
          }};
}

at::Tensor Blocked(std::int64_t span, bool causal, at::Device device) {
  if (!causal) return {};
  return at::ones({span, span}, at::TensorOptions(device).dtype(at::kBool)).triu_(1);
}

// In the type of statistics: kernels of the attention core are fp32 in bf16 runs too, but for the
// casts in front of it.
KernelCase AttentionForward(std::int64_t span, std::int64_t width, bool causal, Type type,
                            at::Device device) {
  return {.table = fmt::format("attention.{}.forward.{}", NameOf(type), causal ? "causal" : "full"),
          .point = fmt::format("s{}_d{}", span, width),
          .prepare = [=]() -> std::function<void()> {
            const auto options = at::TensorOptions(device).dtype(type);
            const at::Tensor qkv = at::randn({3, 1, span, kHeads, width}, options);
            const at::Tensor blocked = Blocked(span, causal, device);
            return [=] {
              const at::Tensor wide = qkv.to(at::kFloat);
              Attend(wide[0], wide[1], wide[2], blocked);
            };
          }};
}

KernelCase AttentionBackward(std::int64_t span, std::int64_t width, bool causal, Type type,
                             at::Device device) {
  return {
      .table = fmt::format("attention.{}.backward.{}", NameOf(type), causal ? "causal" : "full"),
      .point = fmt::format("s{}_d{}", span, width),
      .prepare = [=]() -> std::function<void()> {
        const auto options = at::TensorOptions(device).dtype(type);
        const at::Tensor qkv = at::randn({3, 1, span, kHeads, width}, options);
        const at::Tensor blocked = Blocked(span, causal, device);
        const at::Tensor wide = qkv.to(at::kFloat);
        const AttentionOutput whole = Attend(wide[0], wide[1], wide[2], blocked);
        const at::Tensor dout = at::randn_like(whole.out);
        return [=] {
          const at::Tensor again = qkv.to(at::kFloat);
          AttendBackward(again[0], again[1], again[2], blocked, whole, dout);
        };
      }};
}

using Body = std::function<std::function<void()>(std::int64_t num_elements)>;

KernelCase Moves(const char* name, std::int64_t bytes, std::int64_t bytes_per_element, int times,
                 const Body& body) {
  const std::int64_t num_elements = bytes / bytes_per_element / kClasses * kClasses;
  return {.table = fmt::format("memory.{}", name),
          .point = fmt::format("b{}", num_elements * bytes_per_element),
          .times = times,
          .prepare = [body, num_elements] { return body(num_elements); }};
}

// Additions and activations in the proportion of a plain layer.
std::function<void()> Elementwise(std::int64_t num, at::TensorOptions options) {
  const at::Tensor a = at::randn({num}, options);
  const at::Tensor b = at::randn({num}, options);
  return [=] {
    a + b;
    at::gelu(a, "tanh");
    at::gelu_backward(b, a, "tanh");
  };
}

std::function<void()> Norm(std::int64_t num, at::TensorOptions options) {
  const at::Tensor x = at::randn({num / kNormWidth, kNormWidth}, options);
  const at::Tensor scale = at::ones({kNormWidth}, options);
  return [=] { at::native_layer_norm(x, {kNormWidth}, scale, scale, 1e-5); };
}

std::function<void()> NormBackward(std::int64_t num, at::TensorOptions options) {
  const at::Tensor x = at::randn({num / kNormWidth, kNormWidth}, options);
  const at::Tensor scale = at::ones({kNormWidth}, options);
  const auto [y, mean, inverse] = at::native_layer_norm(x, {kNormWidth}, scale, scale, 1e-5);
  return [=, mean = mean, inverse = inverse] {
    at::native_layer_norm_backward(x, x, {kNormWidth}, mean, inverse, scale, scale,
                                   {true, true, true});
  };
}

std::function<void()> Cast(std::int64_t num, at::TensorOptions options) {
  const at::Tensor x = at::randn({num}, options);
  return [=] { x.to(at::kBFloat16); };
}

// As backend/torch/modules/loss.cc, both ways.
std::function<void()> Loss(std::int64_t num, at::TensorOptions options) {
  const at::Tensor logits = at::randn({num / kClasses, kClasses}, options);
  const at::Tensor labels = at::zeros({num / kClasses, 1}, options.dtype(at::kLong));
  const at::Tensor ones = at::ones({num / kClasses, 1}, options);
  return [=] {
    const at::Tensor powers = logits.clone();
    powers.sub_(powers.amax(-1, true));
    powers.gather(1, labels);
    powers.exp_();
    powers.div_(powers.sum(-1, true));
    powers.scatter_add_(1, labels, ones);
    powers.mul_(ones);
  };
}

std::function<void()> Adam(std::int64_t num, at::TensorOptions options) {
  const at::Tensor weight = at::randn({num}, options);
  const at::Tensor gradient = at::randn({num}, options);
  const at::Tensor first = at::zeros({num}, options);
  const at::Tensor second = at::ones({num}, options);
  return [=] {
    first.mul_(0.9).add_(gradient, 0.1);
    second.mul_(0.999).addcmul_(gradient, gradient, 0.001);
    weight.mul_(0.9999).addcdiv_(first, second.sqrt().add_(1e-8), -1e-6);
  };
}

void AddMoves(std::int64_t bytes, at::TensorOptions options, std::vector<KernelCase>& cases) {
  const auto with = [options](auto make) -> Body {
    return [make, options](std::int64_t num) { return make(num, options); };
  };
  // Bytes an element of one kernel: (12 + 8 + 12) / 3, 8, 12, 6.
  cases.push_back(Moves("norm", bytes, 8, 1, with(Norm)));
  cases.push_back(Moves("norm_backward", bytes, 12, 1, with(NormBackward)));
  cases.push_back(Moves("cast", bytes, 6, 1, with(Cast)));
  cases.push_back(Moves("cross_entropy", bytes, kLossBytes, 1, with(Loss)));
  cases.push_back(Moves("optimizer", bytes, kAdamBytes, 1, with(Adam)));
  KernelCase elementwise = Moves("elementwise", 3 * bytes, 32, 3, with(Elementwise));
  elementwise.point = fmt::format("b{}", 3 * bytes / 32 / kClasses * kClasses * 32 / 3);
  cases.push_back(std::move(elementwise));
}

void AddHeldOut(std::vector<KernelCase> more, std::vector<KernelCase>& cases) {
  for (KernelCase& one : more) {
    one.held_out = true;
    cases.push_back(std::move(one));
  }
}

void AddProducts(Type type, at::Device device, const KernelGrid& grid,
                 std::vector<KernelCase>& cases) {
  const auto options = at::TensorOptions(device).dtype(type);
  for (const std::int64_t m : grid.sides) {
    for (const std::int64_t n : grid.sides) {
      for (const std::int64_t k : grid.sides) cases.push_back(Product(m, n, k, options));
    }
  }
  std::vector<KernelCase> held_out;
  for (const auto& [m, n, k] : grid.held_out_products)
    held_out.push_back(Product(m, n, k, options));
  AddHeldOut(std::move(held_out), cases);
}

void AddAttention(Type type, at::Device device, const KernelGrid& grid,
                  std::vector<KernelCase>& cases) {
  std::vector<KernelCase> held_out;
  for (const bool causal : {true, false}) {
    for (const std::int64_t span : grid.spans) {
      for (const std::int64_t width : grid.widths) {
        cases.push_back(AttentionForward(span, width, causal, type, device));
        cases.push_back(AttentionBackward(span, width, causal, type, device));
      }
    }
    for (const auto& [span, width] : grid.held_out_attentions) {
      held_out.push_back(AttentionForward(span, width, causal, type, device));
      held_out.push_back(AttentionBackward(span, width, causal, type, device));
    }
  }
  AddHeldOut(std::move(held_out), cases);
}

}  // namespace

std::vector<KernelCase> KernelCases(at::Device device, const KernelGrid& grid) {
  std::vector<KernelCase> cases;
  for (const Type type : {at::kFloat, at::kBFloat16}) {
    AddProducts(type, device, grid, cases);
    AddAttention(type, device, grid, cases);
  }
  const auto options = at::TensorOptions(device).dtype(at::kFloat);
  for (const std::int64_t bytes : grid.bytes) AddMoves(bytes, options, cases);
  std::vector<KernelCase> held_out;
  for (const std::int64_t bytes : grid.held_out_bytes) AddMoves(bytes, options, held_out);
  AddHeldOut(std::move(held_out), cases);
  return cases;
}

KernelCase DispatchCase(at::Device device) {
  constexpr int kLinks = 20;
  return {.table = "dispatch", .times = 2 * kLinks, .prepare = [=]() -> std::function<void()> {
            const at::Tensor factor = at::ones({8}, device);
            const at::Tensor input = at::ones({8}, device).set_requires_grad(true);
            return [=] {
              const at::AutoGradMode records(true);
              at::Tensor value = input;
              for (int link = 0; link < kLinks; ++link) value = value * factor;
              torch::autograd::grad({value}, {input}, {factor});
            };
          }};
}

KernelCase OpIssueCase(at::Device device) {
  return {.table = "op_issue", .prepare = [=]() -> std::function<void()> {
            const at::Tensor factor = at::ones({8}, device);
            const at::Tensor input = at::ones({8}, device).set_requires_grad(true);
            return [=] {
              const at::AutoGradMode records(true);
              const at::Tensor leaf = input.detach().set_requires_grad(true);
              torch::autograd::grad({leaf * factor}, {leaf}, {factor});
            };
          }};
}

KernelCase BusyCase(at::Device device) {
  return {.table = "busy", .prepare = [=]() -> std::function<void()> {
            const at::Tensor x = at::randn({128, 512}, device);
            const at::Tensor w = at::randn({512, 512}, device);
            const at::Tensor a = at::randn({512 * 1024}, device);
            return [=] {
              for (int layer = 0; layer < 4; ++layer) x.mm(w);
              a + a;
            };
          }};
}

KernelCase CopyCase() {
  constexpr int kBytes = 16 << 20;
  return {.table = "copy", .times = kBytes, .prepare = []() -> std::function<void()> {
            const at::Tensor from = at::ones({kBytes}, at::kByte);
            const at::Tensor to = at::ones({kBytes}, at::kByte);
            return [=] { to.copy_(from); };
          }};
}

}  // namespace isthmus::backend
