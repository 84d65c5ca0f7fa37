"""`isthmus plan`, `topology` and `scenario`: what they print, and what they refuse."""

import json
import os

import isthmus_cli
from isthmus_cli import run

GPT = "scenarios/examples/gpt-8gpu.yaml"


class PlanTest(isthmus_cli.CliTest):
    def test_prints_the_program_and_proves_it(self):
        result = run("plan", GPT)
        self.assert_ends(result, 0)
        self.assertIn("valid", result.stdout)

    def test_prints_the_ops_of_a_rank(self):
        result = run("plan", GPT, "--rank", 3)
        self.assert_ends(result, 0)
        self.assertIn("optimizer step", result.stdout)
        ops = json.loads(run("plan", GPT, "--rank", 3, "--json").stdout)["ops"]
        self.assertEqual({op["kind"] for op in ops}, {"compute", "collective", "optimizer"})
        gather = next(op for op in ops if op["op"].startswith("all_gather"))
        self.assertEqual(gather["group"], [3, 7])  # TP4 DP2: the other copy of tensor rank 3

    def test_json_counts_roles(self):
        answer = json.loads(run("plan", GPT, "--json").stdout)
        self.assertTrue(answer["valid"])
        self.assertEqual(sum(role["ranks"] for role in answer["roles"]), 8)

    def test_refuses_ranks_that_do_not_exist(self):
        self.assert_user_error(run("plan", GPT, "--rank", 8), "--rank 8", "0 to 7")


class TopologyTest(isthmus_cli.CliTest):
    def test_describes_presets(self):
        for cluster in ["h100-dgx", "h200-dgx", "a100-dgx"]:
            result = run("topology", cluster, "--nodes", 2)
            self.assert_ends(result, 0)
            self.assertIn("NVLink", result.stdout)

    def test_tells_what_a_transfer_crosses(self):
        result = run("topology", "h100-dgx", "--nodes", 4, "--from", 3, "--to", 20)
        self.assert_ends(result, 0)
        route = json.loads(run("topology", "h100-dgx", "--nodes", 4, "--from", 3, "--to", 20, "--json").stdout)
        self.assertEqual(route["bandwidth_Bps"], 50e9)  # one 400 Gbit/s NIC
        self.assertGreater(len(route["links"]), 2)

    def test_refuses_what_is_not_there(self):
        self.assert_user_error(run("topology", "h100-dgz"), "h100-dgz", "h100-dgx")
        self.assert_user_error(run("topology", "h100-dgx", "--from", 3), "--to")
        self.assert_user_error(run("topology", "h100-dgx", "--nodes", 1, "--from", 0, "--to", 8), "8")
        self.assert_user_error(run("topology", "h100-dgx", "--nodes", 0), "0")


class ScenarioTest(isthmus_cli.CliTest):
    def test_shows_values_with_their_origin(self):
        result = run("scenario", "show", GPT, "--set", "workload.global_batch=32")
        self.assert_ends(result, 0)
        self.assertIn("gpt-8gpu.yaml:", result.stdout)
        self.assertIn("--set workload.global_batch", result.stdout)
        self.assertIn("default", result.stdout)

    def test_checks_files(self):
        result = run("scenario", "check", GPT)
        self.assert_ends(result, 0)
        self.assertIn("ok", result.stdout)

    def test_reports_the_mistakes_of_all_files(self):
        bad = "tests/golden/errors"
        files = [f"{bad}/{name}" for name in sorted(os.listdir(bad)) if name.endswith(".yaml")][:2]
        self.assert_user_error(run("scenario", "check", *files), *files)

    def test_reports_a_mistake_with_its_place(self):
        self.assert_user_error(run("scenario", "check", GPT, "--set", "modules.llm.layout.tp=3"), "tp", "hint")


if __name__ == "__main__":
    isthmus_cli.main()
