"""`isthmus validate`: predictions beside runs, the JSON contract, exit codes, bad files."""

import json
import pathlib
import tempfile
import unittest

import isthmus_cli
from isthmus_cli import SOURCE_DIR, run

DATA = pathlib.Path(SOURCE_DIR) / "tests" / "data"
TRAINING = DATA / "training_runs_sample.csv"
MEMORY = DATA / "memory_points_sample.csv"
PAPER = DATA / "paper_runs.csv"
# Rows of the recommended H100 BF16 set that must be predicted.
REQUIRED = ["T1192", "T1196", "T1274", "T1233", "T1640", "T0941"]


class ValidateTest(isthmus_cli.CliTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def sets(self, *rows):
        return self.write("sets.csv", "set,row_id\n" + "".join(f"{s},{r}\n" for s, r in rows))

    def json_of(self, *arguments, returncode=0):
        result = run("validate", *arguments, "--json", timeout=600)
        self.assert_ends(result, returncode)
        return json.loads(result.stdout)

    def test_json_has_the_keys_of_the_contract(self):
        answer = self.json_of(TRAINING, MEMORY)
        self.assertEqual(set(answer["summary"]) - {"memory", "strict", "recipes", "share_in_band"},
                         {"n", "skipped", "median_abs_error", "p90_abs_error", "mean_signed_error"})
        rows = {row["row_id"]: row for row in answer["rows"]}
        for row in answer["rows"]:
            self.assertLessEqual({"row_id", "status", "why", "measured_step_time_s",
                                  "predicted_step_time_s", "error", "measured_memory_gib",
                                  "predicted_memory_gib", "assumptions", "strict_step_time_s",
                                  "strict_error", "bracket", "band", "release"}, set(row))
        for row_id in REQUIRED:
            row = rows[row_id]
            self.assertEqual(row["status"], "predicted", row["why"])
            self.assertAlmostEqual(
                row["error"], row["predicted_step_time_s"] / row["measured_step_time_s"] - 1)
            self.assertLess(abs(row["error"]), 0.5, row_id)
            self.assertTrue(row["assumptions"])
        self.assertEqual(rows["T0454"]["status"], "skipped")
        self.assertIn("FSDP", rows["T0454"]["why"])
        self.assertEqual(rows["M0856"]["measured_memory_gib"], 30)
        self.assertGreater(rows["M0856"]["predicted_memory_gib"], 1)
        self.assertEqual(answer["gains"], [])
        self.assertEqual(sum(answer["skipped_by_reason"].values()), answer["summary"]["skipped"])

    def test_pairs_of_modes_give_gains(self):
        answer = self.json_of(PAPER, "--filter", "workload=1B enc + 7B LLM,context_length=65536")
        gains = {gain["workload"]: gain for gain in answer["gains"]}
        self.assertEqual(set(gains), {"A3.5", "A3.6"})
        self.assertEqual(gains["A3.6"]["mode"], "C")
        self.assertEqual(gains["A3.6"]["measured_pct"], 49.3)
        # The encoder that every context parallel rank repeats is the paper's largest gain.
        self.assertGreater(gains["A3.6"]["predicted_pct"], 25)

    def test_a_skipped_row_of_a_set_makes_the_exit_code_1(self):
        good = self.sets(("dense", "T1192"), ("dense", "T9999"))
        answer = self.json_of(TRAINING, "--filter", "row_id=T1192", "--sets", good)
        self.assertEqual(answer["not_loaded"], ["dense T9999"])
        bad = self.sets(("dense", "T1192"), ("dense", "T0454"))
        answer = self.json_of(TRAINING, "--filter", "row_id=T0454", "--sets", bad, returncode=1)
        self.assertEqual(answer["skipped_in_sets"], ["dense T0454"])

    def test_equal_inputs_give_equal_bytes(self):
        first = run("validate", TRAINING, "--json")
        second = run("validate", TRAINING, "--json", cwd=self.folder)
        self.assertEqual(first.stdout, second.stdout)

    def test_a_folder_gets_tables_and_scenarios_that_load(self):
        out = self.folder / "out"
        result = run("validate", TRAINING, "--filter", "row_id=T1192", "--out", out)
        self.assert_ends(result, 0)
        self.assertIn("1 rows: 1 predicted, 0 skipped", result.stdout)
        for name in ["rows.md", "rows.csv", "groups.md", "groups.csv", "assumptions.md",
                     "scatter.svg"]:
            self.assertTrue((out / name).is_file(), name)
        scenario = out / "scenarios" / "training_runs" / "T1192.yaml"
        self.assert_ends(run("scenario", "check", scenario), 0)

    def test_a_file_of_ones_own_needs_few_columns(self):
        answer = self.json_of(DATA / "own_runs_example.csv")
        small, large = answer["rows"]
        self.assertEqual(small["status"], "predicted", small["why"])
        self.assertIsNotNone(small["error"])
        self.assertIn("bf16: the precision is not stated", small["assumptions"])
        self.assertIn("framework megatron-core: not stated", small["assumptions"])
        self.assertEqual(large["why"], "neither a step time nor a memory figure")
        # The bracket holds the prediction, the band too.
        for key in ["bracket", "band"]:
            self.assertLessEqual(small[key]["low_step_time_s"], small["predicted_step_time_s"])
            self.assertGreaterEqual(small[key]["high_step_time_s"], small["predicted_step_time_s"])

    def test_explain_takes_one_row_apart(self):
        result = run("validate", TRAINING, "--explain", "T1192")
        self.assert_ends(result, 0)
        for words in ["measured", "12.270", "compute", "The longest kernels", "fc1", "Memory"]:
            self.assertIn(words, result.stdout)
        answer = self.json_of(TRAINING, "--explain", "T1192")
        self.assertAlmostEqual(sum(answer["uses"].values()), 1)
        self.assertGreater(answer["kernels"][0]["seconds"], answer["kernels"][1]["seconds"])
        self.assertGreater(answer["duty_relief"]["clock_ratio"], 0.8)
        self.assertIn("at its power balance: clock 0.", result.stdout)
        both = run("validate", TRAINING, "--explain", "T1192", "--out", self.folder / "no")
        self.assert_user_error(both, "--out with --explain", "leave out --out")
        self.assertFalse((self.folder / "no").exists())
        self.assert_user_error(run("validate", TRAINING, "--explain", "T9999"), "T9999", "no given")
        self.assert_user_error(run("validate", TRAINING, "--explain", "T0454"), "FSDP")

    @unittest.skipUnless(isthmus_cli.HAS_FLOW, "SimGrid is not installed")
    def test_rows_can_be_predicted_with_shared_links(self):
        def times(network):
            rows = self.json_of(TRAINING, "--network", network)["rows"]
            return {row["row_id"]: row["predicted_step_time_s"] for row in rows
                    if row["status"] == "predicted"}
        closed, flow = times("nccl"), times("flow")
        self.assertEqual(closed.keys(), flow.keys())
        # What meets makes a step longer, on these full fabrics by little.
        ratios = [flow[row] / closed[row] for row in closed]
        self.assertGreaterEqual(min(ratios), 1)
        self.assertGreater(max(ratios), 1)
        self.assertLess(max(ratios), 1.01)
        self.assert_user_error(run("validate", TRAINING, "--network", "pigeon"), "pigeon", "flow")

    def test_bad_files_are_user_errors_that_name_the_place(self):
        whole = TRAINING.read_text()
        truncated = self.write("truncated.csv", whole[:whole.index("T1196") + 40])
        self.assert_user_error(run("validate", truncated), "truncated.csv:3: error:", "cut off")
        header = self.write("header.csv", "name,value\nx,1\n")
        self.assert_user_error(run("validate", header), "header.csv:1: error:", "no known layout")
        self.assert_user_error(run("validate", self.folder), str(self.folder))
        self.assert_user_error(run("validate", self.folder / "none.csv"), "none.csv")
        broken = self.write("cell.csv", whole.replace("llama3-8b,8,32,4096", "llama3-8b,8,many,4096"))
        self.assert_user_error(run("validate", broken), "cell.csv:2:", "error: column layers: 'many' is not")
        binary = self.folder / "binary.csv"
        binary.write_bytes(bytes(range(256)))
        self.assert_user_error(run("validate", binary), "binary.csv")

    def test_bad_filters_are_user_errors(self):
        self.assert_user_error(run("validate", TRAINING, "--filter", "gpus=H100"), "gpus", "gpu")
        self.assert_user_error(run("validate", TRAINING, "--filter", "H100"), "column=value")

    def test_bad_sets_are_user_errors(self):
        sets = self.write("sets.csv", "name,row\na,b\n")
        self.assert_user_error(run("validate", TRAINING, "--sets", sets), "sets.csv:1", "set")


if __name__ == "__main__":
    isthmus_cli.main()
