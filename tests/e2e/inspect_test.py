"""`isthmus plan`, `topology` and `scenario`: what they print, and what they refuse."""

import json
import os
import tempfile

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

    def test_writes_files_that_it_reads_again(self):
        with tempfile.TemporaryDirectory() as folder:
            copy, picture = os.path.join(folder, "copy.yaml"), os.path.join(folder, "nvl72.svg")
            result = run("topology", "gb200-nvl72", "--nodes", 36, "--export", copy, "--picture", picture)
            self.assert_ends(result, 0)
            self.assertIn("18 nodes, 72 GPUs", result.stdout)
            # What the cluster is was written, so that it says the same of itself.
            self.assertEqual(run("topology", copy).stdout, result.stdout)
            answer = json.loads(run("topology", copy, "--json").stdout)
            self.assertEqual(answer["num_nvlink_domains"], 2)
            with open(picture) as file:
                self.assertIn("NVLink domain 0", file.read())
            self.assert_user_error(run("topology", copy, "--export", copy), "copy.yaml", "overwrite")

    def test_draws_switches_for_pairs(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.yaml")
            with open(path, "w") as file:
                file.write("extends: h100-fat-tree\nfabric:\n  ecmp: {seed: 5}\n")
            route = lambda: json.loads(
                run("topology", path, "--nodes", 256, "--from", 0, "--to", 2047, "--json").stdout)
            self.assertEqual(route()["kind"], "core")
            self.assertEqual(route(), route())
            self.assertRegex(route()["links"][3]["to"], r"^spine 0\.\d+$")

    def test_places_mistakes_of_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.yaml")
            with open(path, "w") as file:
                file.write("extends: h100-dgx\nnode_groups:\n  dgx: {nics_per_node: 3}\n")
            self.assert_user_error(run("topology", path), "cluster.yaml:3:24", "does not divide")

    def test_refuses_what_is_not_there(self):
        self.assert_user_error(run("topology", "h100-dgz"), "h100-dgz", "h100-dgx")
        self.assert_user_error(run("topology", "h100-dgx", "--from", 3), "--to")
        self.assert_user_error(run("topology", "h100-dgx", "--nodes", 1, "--from", 0, "--to", 8), "8")
        self.assert_user_error(run("topology", "h100-dgx", "--nodes", 0), "0")

    def test_refuses_options_that_contradict(self):
        self.assert_user_error(run("topology", "h100-dgx", "--dot", "--json"), "--dot", "--json", "hint")
        self.assert_user_error(run("topology", "h100-dgx", "--dot", "--from", 0, "--to", 1), "--from", "hint")
        self.assert_user_error(run("topology", "h100-dgx", "--picture", "x.png"), "x.png", ".svg")
        self.assertFalse(os.path.exists("x.png"))

    def test_json_has_what_the_text_has(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.yaml")
            with open(path, "w") as file:
                file.write("extends: h100-dgx\nfabric: {nodes_per_leaf_group: 4, oversubscription: 100}\n"
                           "link_faults:\n"
                           "  - {part: nvlink, node: 1, index: 3, bandwidth_factor: 0}\n"
                           "  - {part: pcie, node: 1, index: 3, bandwidth_factor: 0}\n")
            answer = json.loads(run("topology", path, "--json").stdout)
        self.assertEqual(answer["name"], "h100-dgx (changed)")
        self.assertEqual(answer["node_groups"][0]["nic_bandwidth_Bps"], 50e9)
        # 4 NICs of 50 GB/s over 100 take one port of 50 GB/s.
        self.assertEqual(answer["fabric"]["leaf"][0],
                         {"where": "", "down_Bps": 200e9, "up_Bps": 50e9,
                          "oversubscription_asked": 100, "oversubscription": 4})
        self.assertEqual(answer["link_faults"][0],
                         {"part": "nvlink", "node": 1, "index": 3, "bandwidth_factor": 0})
        self.assertEqual(answer["cut_off_gpus"], [11])
        self.assertEqual(answer["num_links"] - answer["num_live_links"], 4)  # both ways of two cables


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
