#include "backend/torch/comm/run_on_all.h"

#include <cstring>
#include <string>

#include <fmt/format.h>

#include "backend/torch/comm/words.h"
#include "base/error.h"

namespace isthmus::backend {
namespace {

/// What a rank's work came to: whether it threw IoError or another error, and its text.
struct Failure {
  std::int64_t length = 0;  // of the text, 0: none
  bool is_io = false;
  std::string text;
};

Failure Try(const std::function<void()>& work) {
  const auto failed = [](const std::exception& error, bool is_io) {
    std::string text = WordsOf(error);
    if (text.empty()) text = "unknown error";
    return Failure{static_cast<std::int64_t>(text.size()), is_io, text};
  };
  try {
    work();
  } catch (const base::IoError& error) {
    return failed(error, true);
  } catch (const base::Error& error) {
    return failed(error, false);
  } catch (const std::exception& error) {  // memory, libraries: nobody's mistake in what was asked
    return failed(error, true);
  }
  return {};
}

}  // namespace

void RunOnAll(Communicator& control, const std::function<void()>& work) {
  const Failure own = Try(work);
  const at::Tensor all = at::zeros({control.size(), 2}, at::kLong);
  all.select(0, control.index())
      .copy_(
          at::tensor({own.length, std::int64_t{own.is_io ? 1 : 0}}, at::TensorOptions(at::kLong)));
  control.AllReduce(all).Wait();
  for (int rank = 0; rank < control.size(); ++rank) {
    const auto length = all[rank][0].item<std::int64_t>();
    if (length == 0) continue;
    const at::Tensor bytes = at::zeros({length}, at::kByte);
    if (rank == control.index()) std::memcpy(bytes.data_ptr(), own.text.data(), own.text.size());
    control.Broadcast(bytes, rank).Wait();
    const std::string text(static_cast<const char*>(bytes.data_ptr()),
                           static_cast<std::size_t>(length));
    const std::string whole = fmt::format("rank {}: {}", rank, text);
    if (all[rank][1].item<std::int64_t>() != 0) throw base::IoError(whole);
    throw base::Error(whole);
  }
}

}  // namespace isthmus::backend
