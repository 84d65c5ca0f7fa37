"""Simulating ranks that share a GPU from a profile as `isthmus calibrate --device gpu` writes it."""

import itertools
import json
import pathlib
import tempfile
import unittest

import isthmus_cli
from isthmus_cli import SOURCE_DIR, run

SCENARIO = pathlib.Path(SOURCE_DIR) / "scenarios" / "host" / "gpu-twin.yaml"


def profile_text(speed):
    """A GPU whose products run at 100 TFLOP/s, attention at 10, memory at 1 TB/s, times `speed`."""
    values = {"gpu.dispatch": (1e-9, "s"), "host.op_issue": (1e-9, "s"),
              "clock.bf16.ratio": (0.9, "1"), "device.peak_rate.bf16": (1e14 * speed, "FLOP/s"),
              "device.usable_memory": (8e10, "B"), "ledger.workspace": (1e8, "B"),
              "ledger.cuda_context": (5e8, "B"), "ledger.nccl_per_communicator": (0, "B"),
              "ledger.reserved.factor": (1.01, "1"), "ledger.reserved.constant": (0, "B"),
              "ledger.reserved.eager_factor": (1.07, "1"), "ledger.verdict_margin": (0.01, "1"),
              "copy.latency": (1e-9, "s"), "copy.to_host.bandwidth": (1e15, "B/s"),
              "copy.to_device.bandwidth": (1e15, "B/s")}
    for m, n, k in itertools.product((64, 8192), repeat=3):
        values[f"gpu.gemm.bf16.m{m}_n{n}_k{k}"] = (1e14 * speed, "FLOP/s")
    for direction, mask in itertools.product(("forward", "backward"), ("causal", "full")):
        values[f"gpu.attention.bf16.{direction}.{mask}.s64_d64"] = (1e13 * speed, "FLOP/s")
    for kind in ("elementwise", "norm", "norm_backward", "cast", "cross_entropy", "optimizer"):
        values[f"gpu.memory.{kind}.b65536"] = (1e12 * speed, "B/s")
    for kind, ranks in itertools.product(
            ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast"), (2, 4)):
        for part in ("wait", "core"):
            values[f"gloo.{kind}.ranks_{ranks}.{part}.b64"] = (1e-12, "s")
    for part in ("wait", "core"):
        values[f"gloo.p2p.{part}.b64"] = (1e-12, "s")
    lines = ["profile:", "  name: single-gpu", "parameters:"]
    for key, (value, unit) in values.items():
        lines.append(f'  {key}: {{value: {value}, unit: "{unit}", mark: measured, source: "a test"}}')
    return "\n".join(lines) + "\n"


class GpuTwinTest(isthmus_cli.CliTest):
    def step_time(self, speed):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "gpu.yaml"
            path.write_text(profile_text(speed), encoding="utf-8")
            result = run("simulate", SCENARIO, "--set", f"profile={path}", "--json")
            self.assert_ends(result, 0)
            return json.loads(result.stdout)

    def test_a_gpu_of_half_the_speed_takes_twice_as_long(self):
        fast = self.step_time(1.0)
        slow = self.step_time(0.5)
        self.assertEqual(fast["num_ranks"], 4)
        # Messages and launches take next to nothing here.
        self.assertAlmostEqual(slow["step_time_s"] / fast["step_time_s"], 2, delta=0.02)
        self.assertTrue(all(role["fits"] for role in fast["memory"]))


if __name__ == "__main__":
    isthmus_cli.main()
