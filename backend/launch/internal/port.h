#pragma once

#include <cstdint>

namespace isthmus::backend::internal {

// A port of this machine that nobody listens on now. Another process may take it before it is used.
std::uint16_t FreePort();

// Throws base::Error if `port` can't be listened on.
void CheckPortIsFree(std::uint16_t port);

}  // namespace isthmus::backend::internal
