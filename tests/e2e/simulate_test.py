"""`isthmus simulate` and `isthmus report`: answers, forms, exit codes, files whole or not at all."""

import glob
import json
import os
import tempfile
import unittest

import isthmus_cli
from isthmus_cli import run

GPT = "scenarios/examples/gpt-8gpu.yaml"
KEYS = ["scenario", "placement", "num_ranks", "step_time_s", "model_tflops_per_gpu", "mfu", "hfu",
        "tokens_per_s", "samples_per_s", "band", "shares", "memory", "boundaries", "critical_path",
        "engine", "assumptions"]
SHARES = ["compute", "copy", "bubble", "exposed_comm", "straggler", "host"]


def simulate_json(*arguments):
    return json.loads(run("simulate", *arguments, "--json").stdout)


class SimulateTest(isthmus_cli.CliTest):
    def test_json_has_the_keys_of_the_contract(self):
        answer = simulate_json(GPT)
        for key in KEYS:
            self.assertIn(key, answer)
        self.assertEqual(sorted(SHARES), sorted(answer["shares"]))
        self.assertEqual(sum(answer["shares"][name] for name in SHARES), 1)
        self.assertIsNone(answer["band"])
        self.assertEqual(answer["num_ranks"], 8)
        self.assertGreater(answer["step_time_s"], 0)
        for row in answer["memory"]:
            for key in ["role", "ranks", "peak_bytes", "capacity_bytes", "fits", "verdict", "categories"]:
                self.assertIn(key, row)
        self.assertEqual(sorted(answer["engine"]), ["folded", "ops", "simulated_ranks"])
        self.assertAlmostEqual(sum(part["share"] for part in answer["critical_path"]), 1, places=9)

    def test_duty_relief_is_stated_beside_and_can_be_switched_on(self):
        plain = simulate_json(GPT)
        relief = plain["duty_relief"]
        self.assertGreater(relief["clock_ratio"], 0.8)  # the H100's at full duty
        self.assertLess(relief["step_time_s"], plain["step_time_s"])
        followed = simulate_json(GPT, "--set", "parameters.clock.duty_relief.enabled=1")
        self.assertLess(followed["step_time_s"], plain["step_time_s"])
        # The estimate leaves everything but tensor kernels as it is; the simulation agrees to 1 %.
        self.assertAlmostEqual(followed["step_time_s"] / relief["step_time_s"], 1, delta=0.01)
        # What is stated beside a run that follows is what it ran with: nothing is applied twice.
        self.assertAlmostEqual(followed["duty_relief"]["step_time_s"] / followed["step_time_s"], 1,
                               delta=0.002)
        self.assertIn("at its power balance: clock 0.", run("simulate", GPT).stdout)

    def test_figures_hang_together(self):
        answer = simulate_json(GPT)
        # 64 samples of 8192 tokens a step.
        self.assertAlmostEqual(answer["tokens_per_s"] * answer["step_time_s"], 64 * 8192, delta=1)
        self.assertAlmostEqual(answer["samples_per_s"] * answer["step_time_s"], 64, places=6)
        self.assertAlmostEqual(answer["model_tflops_per_gpu"] / 989.4, answer["mfu"], places=9)

    def test_timing_is_only_there_when_asked_for(self):
        engine = simulate_json(GPT, "--timing")["engine"]
        self.assertGreater(engine["wall_s"], 0)
        self.assertGreater(engine["peak_rss_bytes"], 0)

    def test_a_band_is_there_when_asked_for(self):
        plain = json.loads(run("simulate", GPT, "--json").stdout)
        self.assertIsNone(plain["band"])
        answer = json.loads(run("simulate", GPT, "--json", "--band").stdout)
        self.assertLess(answer["band"]["low_step_time_s"], answer["step_time_s"])
        self.assertGreater(answer["band"]["high_step_time_s"], answer["step_time_s"])

    def test_folding_and_expansion_change_no_figure(self):
        folded = simulate_json(GPT)
        for options in [("--fold", "off"), ("--expand",), ("--fold", "off", "--expand")]:
            other = simulate_json(GPT, *options)
            self.assertEqual(other["step_time_s"], folded["step_time_s"], options)
            self.assertEqual(other["shares"], folded["shares"], options)
        self.assertLess(folded["engine"]["simulated_ranks"], 8)
        self.assertEqual(simulate_json(GPT, "--fold", "off")["engine"]["simulated_ranks"], 8)

    def test_overrides_take_effect(self):
        half = simulate_json(GPT, "--set", "workload.global_batch=32")
        self.assertLess(half["step_time_s"], simulate_json(GPT)["step_time_s"])

    def test_what_does_not_fit_is_printed_and_ends_with_1(self):
        result = run("simulate", GPT, "--set", "workload.microbatch_size=8", "--set", "workload.sequence_length=32768")
        self.assert_ends(result, 1)
        self.assertIn("does not fit", result.stdout)

    @unittest.skipUnless(isthmus_cli.HAS_FLOW, "SimGrid is not installed")
    def test_flows_alone_on_their_links_take_what_closed_forms_say(self):
        num_equal = 0
        for example in sorted(glob.glob("scenarios/examples/*.yaml", root_dir=isthmus_cli.SOURCE_DIR)):
            with self.subTest(example=example):
                closed = simulate_json(example)
                self.assertNotIn("network", closed)
                flow = simulate_json(example, "--network", "flow")
                unfolded = simulate_json(example, "--network", "flow", "--fold", "off")
                self.assertEqual(unfolded["step_time_s"], flow["step_time_s"])
                self.assertEqual(unfolded["shares"], flow["shares"])
                self.assertGreater(unfolded["network"]["flows"], 0)
                if unfolded["network"]["shared_flows"] == 0:
                    num_equal += 1
                    self.assertEqual(flow["step_time_s"], closed["step_time_s"])
                    self.assertEqual(flow["shares"], closed["shares"])
        self.assertGreaterEqual(num_equal, 2)
        self.assertTrue(any("network flow" in line for line in flow["assumptions"]))

    @unittest.skipUnless(isthmus_cli.HAS_FLOW, "SimGrid is not installed")
    def test_links_are_told_when_asked_for(self):
        islands = ("scenarios/examples/llava-16gpu-noncolocated.yaml", "--network", "flow",
                   "--set", "cluster.fabric.nodes_per_leaf_group=1", "--set", "cluster.fabric.oversubscription=8")
        plain = simulate_json(*islands)
        self.assertNotIn("links", plain)
        answer = simulate_json(*islands, "--links=3")
        self.assertEqual(answer["step_time_s"], plain["step_time_s"])
        self.assertEqual(answer["engine"]["simulated_ranks"], 16)  # unfolded, whatever it would have been
        links = answer["links"]
        self.assertEqual([kind["kind"] for kind in links["kinds"]], ["nvlink", "pcie", "nic", "uplink"])
        for row in links["kinds"] + links["hottest"]:
            self.assertEqual(row["bytes"], sum(row["traffic_bytes"].values()))
            self.assertLessEqual(max(row["utilisation_by_bin"]), 1.000001)
        # All that leaves a node by its NICs goes up.
        nic, uplink = links["kinds"][2:]
        self.assertEqual(nic["bytes"], uplink["bytes"])
        self.assertEqual(len(links["hottest"]), 3)
        for hot in links["hottest"]:
            # What its bins carried is what crossed it.
            width = [min(links["bin_s"], links["end_s"] - links["bin_s"] * index)
                     for index in range(len(hot["utilisation_by_bin"]))]
            carried = sum(share * length for share, length in zip(hot["utilisation_by_bin"], width))
            self.assertAlmostEqual(carried * hot["bandwidth_Bps"] / hot["bytes"], 1, places=6)
        self.assertGreater(links["slow_flows"], 0)
        self.assertAlmostEqual(sum(row["lost_s"] for row in links["losses"]), links["lost_s"], places=9)
        text = run("simulate", *islands, "--links").stdout
        for words in ["Hottest links", "Who slows whom", "uplink", "→"]:
            self.assertIn(words, text)

    def test_links_need_flows(self):
        self.assert_user_error(run("simulate", GPT, "--links"), "--links", "--network flow")
        for number in ["none", "-1", "3.5"]:
            self.assert_user_error(run("simulate", GPT, "--network", "flow", f"--links={number}"), "--links")
        self.assert_user_error(run("report", "step.isthmus", "--links"), "simulate SCENARIO --network flow --links")

    def test_choices_are_named(self):
        self.assert_user_error(run("simulate", GPT, "--network", "carrier-pigeon"), "carrier-pigeon", "nccl")
        self.assert_user_error(run("simulate", GPT, "--fold", "maybe"), "maybe", "auto", "off")

    def test_nothing_is_left_over_from_step_to_step(self):
        # Boundary tensors of step k must be gone in step k + 1: a third step peaks like the second.
        joins = "scenarios/examples/vision-audio-12gpu.yaml"
        two, three = (simulate_json(joins, "--set", f"step.num_steps={steps}")["memory"] for steps in (2, 3))
        self.assertEqual([row["categories"] for row in two], [row["categories"] for row in three])

    def test_other_gpus_take_the_attention_kernel_they_have(self):
        self.assert_ends(run("simulate", GPT, "--set", "cluster=a100-dgx"), 0)
        show = run("scenario", "show", GPT, "--set", "cluster=a100-dgx")
        self.assertIn("attention: flash2", show.stdout)
        self.assert_user_error(run("simulate", GPT, "--set", "cluster=a100-dgx", "--set", "modules.llm.attention=cudnn"),
                               "modules.llm.attention", "flash2")
        self.assert_user_error(run("simulate", GPT, "--set", "modules.llm.precision=fp32"), "modules.llm.precision",
                               "no kernels of fp32")

    def test_a_leader_with_too_many_messages_is_refused(self):
        self.assert_user_error(run("simulate", "tests/data/wide_fan_out.yaml"), "vision", "messages", "hint")

    def test_a_stored_trace_gives_the_same_report(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "step.isthmus")
            simulated = run("simulate", GPT, "--trace", trace)
            self.assert_ends(simulated, 0)
            reported = run("report", trace)
            self.assert_ends(reported, 0)
            # What the power balance would give needs the profile, which a trace doesn't hold.
            lines = [line for line in simulated.stdout.splitlines()
                     if "at its power balance" not in line]
            self.assertEqual(reported.stdout.splitlines(), lines)
            export = os.path.join(folder, "step.pftrace")
            self.assert_ends(run("report", trace, "--export", export), 0)
            self.assertGreater(os.path.getsize(export), 1000)

    def test_every_kind_of_trace_is_written_whole(self):
        with tempfile.TemporaryDirectory() as folder:
            for ending in ["isthmus", "pftrace", "json", "jsonl", "csv"]:
                path = os.path.join(folder, "step." + ending)
                self.assert_ends(run("simulate", GPT, "--trace", path), 0)
                self.assertGreater(os.path.getsize(path), 1000)
            self.assertEqual(len(os.listdir(folder)), 5)  # and no temporary file is left
            with open(os.path.join(folder, "step.json"), encoding="utf-8") as chrome:
                json.load(chrome)

    def test_bad_trace_names_are_user_errors_and_leave_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assert_user_error(run("simulate", GPT, "--trace", os.path.join(folder, "step.xyz")), ".pftrace")
            self.assertEqual(os.listdir(folder), [])

    def test_a_write_that_fails_ends_with_3(self):
        result = run("simulate", GPT, "-o", "/proc/no/such/place/report.txt")
        self.assert_ends(result, 3)
        self.assertEqual(result.stdout, "")

    def test_output_file_takes_the_answer(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "answer.json")
            result = run("simulate", GPT, "--json", "-o", path)
            self.assert_ends(result, 0)
            self.assertEqual(result.stdout, "")
            with open(path, encoding="utf-8") as answer:
                self.assertEqual(json.load(answer), simulate_json(GPT))

    def test_an_output_never_replaces_an_input_or_another_output(self):
        with tempfile.TemporaryDirectory() as folder:
            scenario = os.path.join(folder, "mine.yaml")
            with open(GPT, encoding="utf-8") as source, open(scenario, "w", encoding="utf-8") as copy:
                copy.write(source.read())
            before = os.stat(scenario).st_mtime_ns
            for verb in (["simulate"], ["plan"], ["scenario", "show"]):
                result = run(*verb, scenario, "-o", os.path.join(folder, "..", os.path.basename(folder), "mine.yaml"))
                self.assert_user_error(result, "mine.yaml", "overwrite")
            trace = os.path.join(folder, "step.isthmus")
            self.assert_user_error(run("simulate", scenario, "--trace", trace, "--trace", trace), "twice")
            self.assertEqual(os.stat(scenario).st_mtime_ns, before)
            self.assertEqual(os.listdir(folder), ["mine.yaml"])

    def test_mistakes_on_the_command_line_say_so(self):
        self.assert_user_error(run("simulate"), "isthmus: error:", "SCENARIO", "hint")
        self.assert_user_error(run("topology", "h100-dgx", "--nodes", "none"), "isthmus: error:", "--nodes", "hint")

    def test_broken_traces_are_user_errors(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "broken.isthmus")
            with open(path, "wb") as broken:
                broken.write(b"not a trace")
            self.assert_user_error(run("report", path), "broken.isthmus")
            self.assert_user_error(run("report", os.path.join(folder, "none.isthmus")), "none.isthmus")
            self.assert_user_error(run("report", folder), folder)


if __name__ == "__main__":
    isthmus_cli.main()
