// The GPU library: it loads wherever CUDA's libraries are, and says plainly when there is no GPU.
#include <chrono>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/torch/device/device.h"
#include "base/error.h"

namespace isthmus::backend {
namespace {

using std::chrono_literals::operator""s;
using testing::HasSubstr;

/// Why there is no device here; empty: there is one.
std::string WhyNoDevice() {
  try {
    MakeGpuDevice({}, 10s);
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
  const std::unique_ptr<Device> device = MakeGpuDevice({}, 10s);
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
  const std::unique_ptr<Device> device = MakeGpuDevice({}, 10s);
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
  const std::unique_ptr<Device> device = MakeGpuDevice({}, 10s);
  const at::Tensor values = at::arange(1000, at::TensorOptions().device(device->torch_device()));
  const at::Tensor host = device->CopyToHost(values);
  const at::Tensor again = device->CopyToDevice(host);
  device->WaitForCopies();
  EXPECT_TRUE(at::equal(again, values));
  EXPECT_TRUE(host.is_pinned());
}

}  // namespace
}  // namespace isthmus::backend
