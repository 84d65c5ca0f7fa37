"""Traces of shipped scenarios as Perfetto's published schema reads them.

The rules (nesting, times, flows, counters) are in tests/support/perfetto_check.py.
"""

import json
import os
import tempfile
import unittest

import isthmus_cli
import perfetto_check

EXAMPLES = "scenarios/examples"


@unittest.skipUnless(perfetto_check.is_available(), "the Python package perfetto is not installed")
class PerfettoTest(isthmus_cli.CliTest):

    def trace_of(self, scenario, *options):
        """What the scenario's trace holds, and the JSON answer of the simulation."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "step.pftrace")
            result = isthmus_cli.run("simulate", f"{EXAMPLES}/{scenario}.yaml", "--json",
                                     "--trace", path, *options)
            self.assertIn(result.returncode, (0, 1), result.stderr)  # 1: does not fit
            return perfetto_check.check(path), json.loads(result.stdout)

    def test_every_example_is_shown_with_a_process_per_simulated_rank(self):
        names = sorted(name[:-len(".yaml")] for name in os.listdir(
            os.path.join(isthmus_cli.SOURCE_DIR, EXAMPLES)) if name.endswith(".yaml"))
        self.assertGreater(len(names), 0)
        for name in names:
            with self.subTest(name):
                found, answer = self.trace_of(name)
                self.assertEqual(len(found["processes"]), answer["engine"]["simulated_ranks"])
                self.assertGreater(found["slices"], 0)
                self.assertGreater(found["counters"], 0)
                self.assertGreater(found["categories"]["compute"], 0)

    def test_messages_between_modules_are_flows(self):
        for options in ((), ("--fold", "off")):
            with self.subTest(options=options):
                found, _ = self.trace_of("llava-16gpu-noncolocated", *options)
                self.assertGreater(found["flows"], 0)
                self.assertGreater(found["categories"]["boundary_comm"], 0)

    def test_unfolded_every_rank_is_a_process(self):
        found, answer = self.trace_of("gpt-8gpu", "--fold", "off")
        self.assertEqual(answer["num_ranks"], 8)
        self.assertEqual(len(found["processes"]), 8)

    def test_expanded_blocks_nest_their_pieces(self):
        fused, _ = self.trace_of("gpt-8gpu")
        expanded, _ = self.trace_of("gpt-8gpu", "--expand")
        self.assertEqual(fused["nested"], 0)
        self.assertGreater(expanded["nested"], fused["slices"])


if __name__ == "__main__":
    isthmus_cli.main()
