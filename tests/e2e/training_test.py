"""Training on real ranks that goes on from a checkpoint, on the same or another layout."""

import json
import pathlib
import subprocess
import tempfile
import time
import unittest

import isthmus_cli
from isthmus_cli import BINARY, run

HAS_RANKS = (pathlib.Path(BINARY).parent / "isthmus-rank").exists()


@unittest.skipUnless(HAS_RANKS, "this build has no real backend")
class TrainingTest(isthmus_cli.CliTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "small.yaml").write_text(isthmus_cli.SMALL_DECODER)

    def losses(self, *arguments):
        result = run("run", self.folder / "small.yaml", "--json", *arguments, timeout=60)
        self.assert_ends(result, 0)
        return {step["step"]: step["loss"] for step in json.loads(result.stdout)["steps"]}

    def test_goes_on_where_it_was_on_another_layout(self):
        state = self.folder / "state"
        whole = self.losses("--steps", "6")
        first = self.losses("--steps", "3", "--checkpoint", state)
        then = self.losses("--steps", "3", "--resume", state, "--set", "modules.llm.layout.tp=1")
        self.assertEqual(sorted(first) + sorted(then), sorted(whole))
        for step, loss in {**first, **then}.items():
            self.assertAlmostEqual(loss, whole[step], delta=1e-4)

    def test_checkpoints_on_the_way_outlive_a_killed_run(self):
        state = self.folder / "state"
        process = subprocess.Popen(
            [BINARY, "run", self.folder / "small.yaml", "--steps", "1000000", "--checkpoint", state,
             "--checkpoint-every", "2"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + 60
        while not state.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        process.kill()
        process.communicate(timeout=60)
        then = self.losses("--steps", "1", "--resume", state)
        self.assertEqual(min(then) % 2, 1)  # behind an even number of steps
        self.assertGreater(min(then), 1)

    def test_what_is_no_checkpoint_is_not_replaced(self):
        result = run("run", self.folder / "small.yaml", "--checkpoint", self.folder, timeout=60)
        self.assert_user_error(result, "is not a checkpoint, and would be replaced by one")
        self.assertTrue((self.folder / "small.yaml").exists())

    def test_checkpoints_on_the_way_need_a_place(self):
        self.assert_user_error(run("run", self.folder / "small.yaml", "--checkpoint-every", "2"),
                               "--checkpoint")


if __name__ == "__main__":
    isthmus_cli.main()
