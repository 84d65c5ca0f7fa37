#pragma once

#include <string>

namespace isthmus::scenarios {

/// The reference of all keys of scenario, model and cluster files as Markdown tables: key, type,
/// default, meaning. `docs/scenarios.md` holds it; a test keeps the two equal.
std::string DescribeKeys();

}  // namespace isthmus::scenarios
