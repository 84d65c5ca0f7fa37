#pragma once

#include "profiles/profile.h"

namespace isthmus::sim {

/// A host of 2 cores with round figures: products 50 GFLOP/s, attention 20, memory 5 GB/s, 5 us a
/// dispatch, nothing for an op. Two busy cores run at half speed. Gloo among 2 ranks waits 100 us
/// and works 50 us up to 1,000 B, 300 and 250 us at 5,000 B; twice that among 4; messages as 2
/// ranks.
profiles::Profile HostProfile();

}  // namespace isthmus::sim
