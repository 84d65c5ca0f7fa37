#include "backend/torch/modules/differentiable.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <algorithm>
#include <memory>

namespace isthmus::backend {
namespace {

struct RuleNode final : torch::autograd::Node {
  GradientRule rule;

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    if (!gradients.front().defined()) return torch::autograd::variable_list(num_outputs());
    return rule(gradients.front());
  }
  void release_variables() override { rule = nullptr; }
};

}  // namespace

at::Tensor Differentiable(at::Tensor output, const std::vector<at::Tensor>& inputs,
                          GradientRule rule) {
  const bool records = at::GradMode::is_enabled() &&
                       std::any_of(inputs.begin(), inputs.end(), [](const at::Tensor& input) {
                         return input.defined() && input.requires_grad();
                       });
  if (!records) return output;
  const std::shared_ptr<RuleNode> node(new RuleNode, torch::autograd::deleteNode);
  node->rule = std::move(rule);
  torch::autograd::edge_list edges;
  for (const at::Tensor& input : inputs) {
    edges.push_back(input.defined() ? torch::autograd::impl::gradient_edge(input)
                                    : torch::autograd::Edge());
  }
  node->set_next_edges(std::move(edges));
  torch::autograd::set_history(output, node);
  return output;
}

}  // namespace isthmus::backend
