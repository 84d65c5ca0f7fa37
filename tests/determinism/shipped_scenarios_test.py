"""Every shipped scenario gives the same bytes twice: another locale, folder and environment change nothing."""

import glob
import os
import tempfile
import unittest

import isthmus_cli
from isthmus_cli import SOURCE_DIR, run

PATTERNS = ["scenarios/*.yaml", "scenarios/examples/*.yaml", "scenarios/scale/*.yaml", "scenarios/paper/**/*.yaml"]


def shipped():
    files = []
    for pattern in PATTERNS:
        files += glob.glob(os.path.join(SOURCE_DIR, pattern), recursive=True)
    return sorted(files)


class ShippedScenariosTest(isthmus_cli.CliTest):
    def assert_same_twice(self, scenarios, *options):
        with tempfile.TemporaryDirectory() as folder:
            for scenario in scenarios:
                with self.subTest(scenario=scenario):
                    traces = [os.path.join(folder, name) for name in ["one.isthmus", "two.isthmus"]]
                    first = run("simulate", scenario, "--json", "--trace", traces[0], *options)
                    second = run("simulate", scenario, "--json", "--trace", traces[1], *options, cwd=folder,
                                 env={"LC_ALL": "de_DE.UTF-8", "TZ": "Asia/Tokyo", "HOME": folder})
                    self.assertIn(first.returncode, [0, 1], first.stderr)  # 1: does not fit
                    self.assertEqual(first.stdout, second.stdout)
                    with open(traces[0], "rb") as one, open(traces[1], "rb") as two:
                        self.assertEqual(one.read(), two.read())

    def test_two_runs_give_the_same_bytes(self):
        self.assertGreater(len(shipped()), 0)
        self.assert_same_twice(shipped())

    @unittest.skipUnless(isthmus_cli.HAS_FLOW, "SimGrid is not installed")
    def test_two_runs_with_flows_give_the_same_bytes(self):
        chosen = [scenario for scenario in shipped() if "/paper/" not in scenario]
        self.assertGreater(len(chosen), 6)
        self.assert_same_twice(chosen, "--network", "flow")


if __name__ == "__main__":
    isthmus_cli.main()
