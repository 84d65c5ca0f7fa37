#include "backend/launch/internal/port.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "backend/launch/internal/child_process.h"
#include "base/error.h"

namespace isthmus::backend::internal {
namespace {

// A socket that holds the port as a server would; not open, with errno, if it can't. Port 0 stands
// for any.
Descriptor Bind(std::uint16_t port) {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // A port whose last connections are still being closed is free for a server.
  const int yes = 1;
  ::setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  const auto* any = reinterpret_cast<const sockaddr*>(&address);  // NOLINT: the interface.
  const bool is_bound =
      ::bind(socket.number(), any, sizeof(address)) == 0 && ::listen(socket.number(), 1) == 0;
  return is_bound ? std::move(socket) : Descriptor();
}

}  // namespace

std::uint16_t FreePort() {
  const Descriptor socket = Bind(0);
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  auto* any = reinterpret_cast<sockaddr*>(&address);  // NOLINT: the interface.
  if (!socket.is_open() || ::getsockname(socket.number(), any, &size) != 0) {
    throw base::IoError("find", "a free port", errno);
  }
  return ntohs(address.sin_port);
}

void CheckPortIsFree(std::uint16_t port) {
  if (Bind(port).is_open()) return;
  throw base::Error(fmt::format("port {}: {}\n  hint: name another one, or none to have one found",
                                port, std::strerror(errno)));
}

}  // namespace isthmus::backend::internal
