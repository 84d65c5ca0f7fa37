"""isthmus calibrate: measures this machine, and a scenario is simulated with what it wrote."""

import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

import isthmus_cli
from isthmus_cli import BINARY, SOURCE_DIR, run

TWIN = pathlib.Path(SOURCE_DIR) / "tests" / "data" / "twin_decoder.yaml"
HAS_RANKS = (pathlib.Path(BINARY).parent / "isthmus-rank").exists()
HAS_GPU_SIDE = (pathlib.Path(BINARY).parent / "libisthmus_cuda.so").exists()


class CalibrateTest(isthmus_cli.CliTest):
    def test_refuses_devices_that_it_does_not_know(self):
        self.assert_user_error(run("calibrate", "--device", "tpu"), "allowed: cpu, gpu")

    @unittest.skipUnless(HAS_RANKS, "this build has no real backend")
    def test_says_what_is_missing_for_a_gpu(self):
        with tempfile.TemporaryDirectory() as folder:
            profile = pathlib.Path(folder) / "gpu.yaml"
            result = run("calibrate", "--device", "gpu", "--quick", "-o", profile, timeout=300)
            if result.returncode == 0:
                self.skipTest("there is a GPU")
            if HAS_GPU_SIDE:
                self.assert_ends(result, 3)
                self.assertIn("no usable NVIDIA GPU", result.stderr)
            else:
                self.assert_user_error(result, "libisthmus_cuda.so is not there")
            self.assertFalse(profile.exists())

    def test_a_scenario_without_its_profile_says_how_to_get_one(self):
        self.assert_user_error(run("simulate", TWIN), "isthmus calibrate -o cpu-host.yaml")

    @unittest.skipUnless(HAS_RANKS, "this build has no real backend")
    def test_a_profile_that_cannot_be_written_fails_before_measuring(self):
        result = run("calibrate", "--quick", "-o", "/proc/none/cpu.yaml", timeout=20)
        self.assert_ends(result, 3)
        self.assertIn("/proc/none", result.stderr)

    @unittest.skipUnless(HAS_RANKS, "this build has no real backend")
    def test_an_interrupt_leaves_nothing_behind(self):
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.Popen(
                [BINARY, "calibrate", "--quick", "-o", pathlib.Path(folder) / "here.yaml"],
                env={**os.environ, "TMPDIR": folder}, text=True, stderr=subprocess.PIPE,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
            self.addCleanup(process.kill)
            children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
            deadline = time.monotonic() + 30
            while len(children.read_text().split()) < 4 and time.monotonic() < deadline:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            _, error = process.communicate(timeout=60)
            self.assertEqual(process.returncode, -signal.SIGINT)
            self.assertIn("interrupted", error)
            self.assertEqual(os.listdir(folder), [])

    @unittest.skipUnless(HAS_RANKS, "this build has no real backend")
    def test_measures_fits_and_predicts(self):
        with tempfile.TemporaryDirectory() as folder:
            profile = pathlib.Path(folder) / "here.yaml"
            result = run("calibrate", "--quick", "-o", profile, timeout=600)
            self.assert_ends(result, 0)
            self.assertIn("error on shapes held out", result.stdout)
            text = profile.read_text(encoding="utf-8")
            for word in ("machine: ", "versions: \"torch ", "commit: ", "cpu.gemm.fp32.check",
                         "gloo.all_reduce.ranks_4.wait.b64", "host.speed.busy_2"):
                self.assertIn(word, text)
            times = {}
            for tp in (1, 4):
                result = run("simulate", TWIN, "--json", "--set", f"profile={profile}", "--set",
                             f"modules.llm.layout.tp={tp}", "--set",
                             f"modules.llm.layout.dp={4 // tp}")
                self.assert_ends(result, 0)
                times[tp] = json.loads(result.stdout)["step_time_s"]
            # Four ranks that wait for each other in every layer take longer than four that don't.
            self.assertLess(times[1], times[4])


if __name__ == "__main__":
    isthmus_cli.main()
