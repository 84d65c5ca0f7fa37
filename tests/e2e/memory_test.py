"""Predicted peaks beside measured ones, and memory on a machine of which only the capacity is known."""

import json
import pathlib
import tempfile

import isthmus_cli
from isthmus_cli import SOURCE_DIR, run

RUNS = pathlib.Path(SOURCE_DIR) / "tests" / "data" / "memory_runs.csv"

B200_JOB = """
cluster: b200-dgx
num_gpus: 8
workload: {sequence_length: 4096, global_batch: 16}
modules:
  llm:
    model: llama3-8b
    layout: {tp: 2, pp: 2, dp: 2}
"""


class MemoryTest(isthmus_cli.CliTest):
    def test_measured_peaks_are_met(self):
        result = run("validate", RUNS, "--json", timeout=600)
        self.assert_ends(result, 0)
        # 15 reduced Llama models with every setting known: within 1.5 % each. 15 runs of nanotron's
        # sweep: within 2 % each, median 1 %. The strict variant lacks what was seen in the rows.
        bounds = {"B200": 0.015, "H100": 0.02}
        errors = {"B200": [], "H100": []}
        for row in json.loads(result.stdout)["rows"]:
            self.assertEqual(row["status"], "predicted", row["why"])
            gpu = "B200" if row["predicted_step_time_s"] is None else "H100"
            self.assertLess(abs(row["memory_error"]), bounds[gpu], row["row_id"])
            self.assertIsNotNone(row["strict_memory_error"])
            errors[gpu].append(abs(row["memory_error"]))
        self.assertEqual([len(errors["B200"]), len(errors["H100"])], [15, 15])
        self.assertLess(sorted(errors["H100"])[7], 0.01)

    def test_a_machine_without_kernels_gets_memory_and_no_time(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "job.yaml"
            path.write_text(B200_JOB)
            result = run("simulate", path, "--json")
            self.assert_ends(result, 0)
            answer = json.loads(result.stdout)
            for key in ("step_time_s", "mfu", "tokens_per_s", "shares", "band"):
                self.assertIsNone(answer[key], key)
            self.assertTrue(any("no kernels" in line for line in answer["assumptions"]))
            banded = run("simulate", path, "--json", "--band")
            self.assert_ends(banded, 0)
            self.assertIsNone(json.loads(banded.stdout)["band"])
            self.assertTrue(any("no band" in line
                                for line in json.loads(banded.stdout)["assumptions"]))
            for memory in answer["memory"]:
                self.assertGreater(memory["allocated_bytes"], 10 * 2**30)
                # reserved = allocated * 1.01 + 0.6 GiB; the device adds context and NCCL.
                self.assertAlmostEqual(memory["reserved_bytes"] / 2**30,
                                       memory["allocated_bytes"] / 2**30 * 1.01 + 0.6, places=3)
                self.assertGreater(memory["device_bytes"], memory["reserved_bytes"] + 2**29)
                self.assertEqual(memory["device_bytes"], memory["peak_bytes"])
                self.assertEqual(sum(memory["categories"].values()), memory["device_bytes"])
                self.assertEqual(memory["verdict"], "fits")
                self.assertIn(memory["phase"], ("turn", "loss"))
            text = run("simulate", path)
            self.assert_ends(text, 0)
            self.assertIn("no step time", text.stdout)


if __name__ == "__main__":
    isthmus_cli.main()
