// The GPU library: it loads wherever CUDA's libraries are, and says plainly when there is no GPU.
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/torch/device/device.h"
#include "base/error.h"
#include "tests/support/torch_ranks.h"

namespace isthmus::backend {
namespace {

using std::chrono_literals::operator""s;
using testing::HasSubstr;

/// Why there is no device here; empty: there is one.
std::string WhyNoDevice() {
  try {
    MakeGpuDevice({.timeout = 10s});
    return "";
  } catch (const base::IoError& error) {
    return error.what();
  }
}

TEST(GpuLibraryTest, LoadsAndSaysWhetherThereIsADevice) {
  const std::string why = WhyNoDevice();
  if (why.empty()) return;  // a GPU: the tests below use it
  EXPECT_THAT(why, HasSubstr("error: no device: this machine has no usable NVIDIA GPU"));
}

TEST(GpuDeviceTest, MarksAreInTheOrderOfWhatWasLaunched) {
  if (const std::string why = WhyNoDevice(); !why.empty()) GTEST_SKIP() << why;
  const std::unique_ptr<Device> device = MakeGpuDevice({.timeout = 10s});
  const at::Tensor a = at::ones({2048, 2048}, device->torch_device());
  const Mark before = device->Record();
  const at::Tensor product = at::mm(a, a);
  const Mark after = device->Record();
  device->Synchronize();
  EXPECT_LT(device->TimeOf(before), device->TimeOf(after));
  EXPECT_EQ(product[0][0].item<float>(), 2048.0F);
}

TEST(GpuDeviceTest, KernelsAreRecordedBetweenTheirMarks) {
  if (const std::string why = WhyNoDevice(); !why.empty()) GTEST_SKIP() << why;
  const std::unique_ptr<Device> device = MakeGpuDevice({.timeout = 10s});
  device->RecordKernels();
  const at::Tensor a = at::ones({4096, 4096}, device->torch_device());
  device->Synchronize();
  device->TakeKernels();
  const Mark before = device->Record();
  at::mm(a, a);
  const Mark after = device->Record();
  device->Synchronize();
  const std::vector<KernelRecord> kernels = device->TakeKernels();
  ASSERT_FALSE(kernels.empty());
  // Two clocks are put on one scale by one pair of readings: 50 us apart at most.
  constexpr std::int64_t kSlack = 50'000'000;
  EXPECT_GE(kernels.front().start_ps, device->TimeOf(before) - kSlack);
  EXPECT_LE(kernels.back().end_ps, device->TimeOf(after) + kSlack);
}

TEST(GpuDeviceTest, CopiesToTheHostAndBackKeepTheValues) {
  if (const std::string why = WhyNoDevice(); !why.empty()) GTEST_SKIP() << why;
  const std::unique_ptr<Device> device = MakeGpuDevice({.timeout = 10s});
  const at::Tensor values = at::arange(1000, at::TensorOptions().device(device->torch_device()));
  const at::Tensor host = device->CopyToHost(values);
  const at::Tensor again = at::empty_like(values);
  device->CopyFromHost(again, host);
  device->WaitForCopies();
  EXPECT_TRUE(at::equal(again, values));
  EXPECT_TRUE(host.is_pinned());
}

TEST(GpuDeviceTest, NcclRunsOnAGpuOfItsOwn) {
  if (const std::string why = WhyNoDevice(); !why.empty()) GTEST_SKIP() << why;
  const std::unique_ptr<Device> device = MakeGpuDevice({.timeout = 10s});
  EXPECT_THAT(device->description(), HasSubstr("NCCL 2."));
  const auto backend = device->communicators().Make(c10::make_intrusive<c10d::HashStore>(), 0, 1);
  EXPECT_TRUE(backend->supportsCoalescing());
  std::vector<at::Tensor> tensors{at::full({3}, 2.0, device->torch_device())};
  backend->allreduce(tensors)->wait();
  device->Synchronize();
  EXPECT_EQ(tensors.front().sum().item<double>(), 6.0);
}

// Ranks 0 and 1 have 1 and 2; each sends its own to the other.
TEST(GpuDeviceTest, RanksThatShareAGpuTalkThroughTheHost) {
  if (const std::string why = WhyNoDevice(); !why.empty()) GTEST_SKIP() << why;
  std::vector<double> sums(2);
  std::vector<double> received(2);
  tests::RunOnThreads(2, [&](base::Rank rank, const auto& store) {
    const std::unique_ptr<Device> device = MakeGpuDevice(
        {.timeout = 10s, .each_has_its_own = [](const std::string& /*gpu*/) { return false; }});
    Communicator pair("pair", {base::Rank{0}, base::Rank{1}}, rank,
                      device->communicators().Make(store, rank.value(), 2));
    const at::Tensor own = at::full({1}, 1.0 + rank.value(), device->torch_device());
    const at::Tensor other = at::zeros({1}, device->torch_device());
    for (Pending& pending :
         pair.Exchange({{.tensor = own, .peer = 1 - rank.value(), .sends = true},
                        {.tensor = other, .peer = 1 - rank.value(), .sends = false}})) {
      pending.Wait();
    }
    pair.AllReduce(own).Wait();
    sums[rank.index()] = own.item<double>();
    received[rank.index()] = other.item<double>();
  });
  EXPECT_EQ(sums, (std::vector<double>{3, 3}));
  EXPECT_EQ(received, (std::vector<double>{2, 1}));
}

}  // namespace
}  // namespace isthmus::backend
