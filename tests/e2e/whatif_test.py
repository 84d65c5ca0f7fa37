"""`isthmus whatif`: the difference, its terms, and what docs/whatif.md shows of it.

ISTHMUS_UPDATE_GOLDEN=1 writes the present output into docs/whatif.md.
"""

import json
import os
import pathlib
import re
import shlex
import tempfile
import unittest

import isthmus_cli
from isthmus_cli import run

QUICKSTART = "scenarios/quickstart.yaml"
PAGE = pathlib.Path(isthmus_cli.SOURCE_DIR) / "docs/whatif.md"
EXAMPLE = re.compile(r"```sh\nisthmus (whatif scenarios/.*?)\n```\n\n```text\n(.*?)\n```", re.DOTALL)
SLOW = "cluster.slow_gpus=[{gpu: 3, speed_factor: 0.8}]"


class WhatIfTest(isthmus_cli.CliTest):
    def ask(self, *arguments):
        result = run("whatif", *arguments, "--json")
        self.assert_ends(result, 0)
        return json.loads(result.stdout)

    def test_terms_sum_to_the_difference_of_two_simulations(self):
        answer = self.ask(QUICKSTART, "--change", SLOW)
        steps = []
        for overrides in ([], ["--set", SLOW]):
            result = run("simulate", QUICKSTART, *overrides, "--json")
            self.assert_ends(result, 0)
            steps.append(json.loads(result.stdout)["step_time_s"])
        self.assertEqual([answer[side]["step_time_s"] for side in ("base", "changed")], steps)
        terms = sum(term["difference_ps"] for term in answer["terms"])
        self.assertEqual(terms + answer["other"]["difference_ps"], answer["difference_ps"])
        self.assertEqual(answer["difference_ps"],
                         answer["changed"]["window_ps"] - answer["base"]["window_ps"])
        self.assertLessEqual(abs(answer["other"]["difference_ps"]),
                             0.05 * abs(answer["difference_ps"]))
        self.assertTrue(all(term["op"] for term in answer["terms"]))

    def test_verbose_names_every_term_that_differs(self):
        answer = self.ask(QUICKSTART, "--change", SLOW, "-v")
        self.assertEqual(answer["other"]["difference_ps"], 0)

    @unittest.skipUnless(isthmus_cli.HAS_FLOW, "SimGrid is not installed")
    def test_equal_questions_have_equal_answers(self):
        first, second = (run("whatif", QUICKSTART, "--change", SLOW, "--network", "flow")
                         for _ in range(2))
        self.assert_ends(first, 0)
        self.assertEqual(first.stdout, second.stdout)

    def test_relative_values_and_short_keys_are_told_in_full(self):
        answer = self.ask(QUICKSTART, "--change", "cluster.nic.bandwidth=2x", "--change",
                          "workload.global_batch=-50%")
        self.assertEqual(answer["changes"], [
            {"key": "cluster.node_groups.dgx.nic_bandwidth", "before": "50 GB/s",
             "after": "100 GB/s"},
            {"key": "workload.global_batch", "before": "128", "after": "64"}])
        self.assertFalse(answer["same_program"])
        self.assertTrue(all(term["op"] for term in answer["terms"]))

    def test_set_is_of_the_base(self):
        answer = self.ask(QUICKSTART, "--set", "workload.global_batch=64", "--change",
                          "workload.global_batch=2x")
        self.assertEqual(answer["changes"][0]["before"], "64")

    def test_a_file_gets_the_answer(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "answer.txt"
            result = run("whatif", QUICKSTART, "--change", SLOW, "-o", path)
            self.assert_ends(result, 0)
            self.assertEqual(result.stdout, "")
            self.assertIn("Where the difference comes from", path.read_text(encoding="utf-8"))

    def test_a_change_that_does_not_fit_is_a_no(self):
        result = run("whatif", QUICKSTART, "--change", "workload.microbatch_size=32")
        self.assert_ends(result, 1)
        self.assertIn("does not fit", result.stdout)

    def test_mistakes_name_the_option(self):
        for change, *words in [
                ("workload.globl_batch=2x", "--change workload.globl_batch", "unknown key",
                 "did you mean global_batch?"),
                ("workload.global_batch=2.33x", "--change workload.global_batch",
                 "is not a whole number", "allowed"),
                ("cluster.nic.bandwidth=2y", "--change cluster.node_groups.dgx.nic_bandwidth",
                 "is not a unit"),
                ("nodes", "--change nodes", "no value is given"),
                ("cluster.slow_gpus=[{gpu: 99, speed_factor: 0.5}]", "gpu"),
        ]:
            with self.subTest(change=change):
                self.assert_user_error(run("whatif", QUICKSTART, "--change", change), *words)
        self.assert_user_error(
            run("whatif", QUICKSTART, "--change", "cluster.nic.bandwidth=2x",
                "--change", "cluster.nic.bandwidth=3x"),
            "--change cluster.nic.bandwidth", "nic_bandwidth is changed already")
        self.assert_user_error(run("whatif", QUICKSTART), "no change is given")
        self.assert_user_error(run("whatif", QUICKSTART, "--change", SLOW, "--network", "x"),
                               "no such model", "nccl, flow")
        self.assert_user_error(run("whatif", "no/such.yaml", "--change", SLOW), "no/such.yaml")
        self.assert_user_error(run("whatif", QUICKSTART, "--change", SLOW, "-o", QUICKSTART),
                               "would overwrite")

    @unittest.skipUnless(isthmus_cli.HAS_FLOW, "SimGrid is not installed")
    def test_the_page_shows_the_real_output(self):
        text = PAGE.read_text(encoding="utf-8")
        examples = list(EXAMPLE.finditer(text))
        self.assertGreater(len(examples), 4)
        for example in reversed(examples):
            command = example.group(1).replace("\\\n", " ")
            with self.subTest(command=command):
                result = run(*shlex.split(command))
                self.assert_ends(result, 0)
                real = result.stdout.rstrip()
                if os.environ.get("ISTHMUS_UPDATE_GOLDEN"):
                    text = text[:example.start(2)] + real + text[example.end(2):]
                else:
                    self.assertEqual(example.group(2), real)
        if os.environ.get("ISTHMUS_UPDATE_GOLDEN"):
            PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    isthmus_cli.main()
