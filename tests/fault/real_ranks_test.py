"""Real ranks that are started wrongly, killed, or can't meet or write: a clear error on every rank
and the exit code that says whose mistake it is, no hang beyond the time-out, nothing half-written."""

import json
import os
import pathlib
import resource
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import isthmus_cli
from isthmus_cli import BINARY

RANK = pathlib.Path(BINARY).parent / "isthmus-rank"

SCENARIO = isthmus_cli.SMALL_DECODER + "training: {data: {task: random}}\n"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@unittest.skipUnless(RANK.exists(), "this build has no real backend")
class RealRanksTest(isthmus_cli.CliTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "small.yaml").write_text(SCENARIO)

    def start_rank(self, rank, port, *arguments, world_size=2):
        """One rank as a cluster's launcher would start it."""
        variables = {"RANK": rank, "WORLD_SIZE": world_size, "LOCAL_RANK": rank,
                     "LOCAL_WORLD_SIZE": world_size, "MASTER_ADDR": "127.0.0.1",
                     "MASTER_PORT": port, "OMP_NUM_THREADS": 1}
        environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
        process = subprocess.Popen([RANK, "small.yaml", *map(str, arguments)], cwd=self.folder,
                                   env=environment, text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        return process

    def run_it(self, *arguments):
        return isthmus_cli.run("run", "small.yaml", *arguments, cwd=self.folder)

    def assert_rank_fails(self, process, rank, returncode, *words):
        output, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, returncode, error)
        self.assertEqual(output, "")
        self.assertIn(f"rank {rank}: error: ", error)
        for word in words:
            self.assertIn(word, error)
        # Its own words have no stack of c10d below them.
        self.assertNotIn("frame #", error[error.index(f"rank {rank}: error: "):])

    def test_a_run_trains_and_says_so(self):
        result = self.run_it("--steps", 4, "--json")
        self.assert_ends(result, 0)
        answer = json.loads(result.stdout)
        self.assertEqual([step["step"] for step in answer["steps"]], [1, 2, 3, 4])
        self.assertGreater(answer["step_time_s"], 0)
        self.assertGreater(answer["memory_bytes"], 0)
        self.assertIn("step     1  loss", result.stderr)
        # Threads, ports and processes differ from run to run; what is computed doesn't.
        again = json.loads(self.run_it("--steps", 4, "--json").stdout)
        self.assertEqual([step["loss"] for step in again["steps"]],
                         [step["loss"] for step in answer["steps"]])

    def test_a_name_that_is_no_text_costs_no_answer(self):
        name = b"b\xff.yaml"
        with open(os.fsencode(self.folder) + b"/" + name, "w", encoding="utf-8") as file:
            file.write(SCENARIO)
        result = subprocess.run([BINARY, "run", name, "--steps", "1", "--json"], cwd=self.folder,
                                timeout=60, capture_output=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout)["scenario"]["name"], "b\ufffd")

    def test_ranks_started_by_a_clusters_launcher_do_the_same(self):
        port = free_port()
        ranks = [self.start_rank(rank, port, "--steps", 4, "--json") for rank in range(2)]
        outputs = [rank.communicate(timeout=60)[0] for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0, 0])
        self.assertEqual(outputs[1], "")
        launched = json.loads(self.run_it("--steps", 4, "--json").stdout)
        self.assertEqual([step["loss"] for step in json.loads(outputs[0])["steps"]],
                         [step["loss"] for step in launched["steps"]])

    def test_a_rank_without_a_launcher_names_them(self):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("SLURM_", "OMPI_")) and name != "RANK"}
        result = subprocess.run([RANK, "small.yaml"], cwd=self.folder, env=environment, text=True,
                                capture_output=True, timeout=60, check=False)
        self.assert_user_error(result, "isthmus-rank: error: no launcher says", "torchrun")

    def test_one_rank_alone_is_not_measured(self):
        variables = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1",
                     "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        result = subprocess.run([RANK, "--measure", "rows.csv"], cwd=self.folder, timeout=60,
                                env={**os.environ, **variables}, text=True, capture_output=True,
                                check=False)
        self.assert_user_error(result, "isthmus calibrate")

    def test_the_number_of_ranks_must_be_the_scenarios(self):
        rank = self.start_rank(1, free_port(), world_size=4)
        self.assert_rank_fails(rank, 1, 2, "the scenario has 2 ranks, but 4 were started")

    def test_ranks_of_different_runs_refuse_each_other(self):
        port = free_port()
        ranks = [self.start_rank(0, port),
                 self.start_rank(1, port, "--set", "training.learning_rate=0.5")]
        for number, rank in enumerate(ranks):
            self.assert_rank_fails(rank, number, 2)

    def test_a_rank_whose_partner_never_comes_gives_up(self):
        self.assert_rank_fails(self.start_rank(0, free_port(), "--timeout", 2), 0, 3)
        self.assert_rank_fails(self.start_rank(1, free_port(), "--timeout", 2), 1, 3)

    def test_a_port_that_is_taken_is_told(self):
        with socket.socket() as taken:
            taken.bind(("", 0))
            taken.listen()
            port = taken.getsockname()[1]
            # The stranger takes rank 1's connection and never answers.
            ranks = [self.start_rank(rank, port, "--timeout", 2) for rank in range(2)]
            for number, rank in enumerate(ranks):
                self.assert_rank_fails(rank, number, 3, f"did not meet at 127.0.0.1:{port}")

    def test_a_killed_rank_ends_the_run(self):
        process = subprocess.Popen(
            [BINARY, "run", "small.yaml", "--steps", "1000000", "--timeout", "5",
             "--trace", "step.isthmus", "--checkpoint", "state"],
            cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertIn("step", process.stderr.readline())
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
        ids = [int(text) for text in children.read_text().split()]
        self.assertEqual(len(ids), 2)
        os.kill(ids[1], signal.SIGKILL)
        output, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 3)
        self.assertEqual(output, "")
        self.assertIn("isthmus run: error: rank 1 was killed by signal 9", error)
        self.assertFalse(any(pathlib.Path(f"/proc/{number}").exists() for number in ids))
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["small.yaml"])

    def test_a_stopped_rank_makes_the_others_say_where_they_are(self):
        port = free_port()
        ranks = [self.start_rank(rank, port, "--steps", 1000000, "--timeout", 2)
                 for rank in range(2)]
        self.assertIn("step", ranks[0].stderr.readline())
        time.sleep(1.0)  # a rank tells its place twice a second
        ranks[1].send_signal(signal.SIGSTOP)
        _, error = ranks[0].communicate(timeout=60)
        self.assertEqual(ranks[0].returncode, 3, error)
        # What rank 1 told of itself, which nothing but its own words can say.
        self.assertRegex(error, r"rank 1 was (in op \d+ \(.+\)|between steps)")

    def test_a_place_that_cannot_be_written_fails_every_rank_before_it_trains(self):
        (self.folder / "file").write_text("x")
        for option, place, named in (("--trace", "file/step.isthmus", "/file: Not a directory"),
                                     ("--checkpoint", "file/state", "/state.partial: Not a dir")):
            with self.subTest(option=option):
                port = free_port()
                ranks = [self.start_rank(rank, port, option, place, "--steps", 1000000)
                         for rank in range(2)]
                for number, rank in enumerate(ranks):
                    self.assert_rank_fails(rank, number, 3, named)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()),
                         ["file", "small.yaml"])

    def test_nobody_has_to_watch(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = subprocess.run(
                [BINARY, "run", "small.yaml", "--steps", "2", "--json"], cwd=self.folder, text=True,
                timeout=60, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=full,
                check=False)
        self.assertEqual(result.returncode, 0)
        self.assertEqual(len(json.loads(result.stdout)["steps"]), 2)

    def test_a_full_disk_is_told(self):
        (self.folder / "full.isthmus").symlink_to("/dev/full")
        result = self.run_it("--steps", 3, "--trace", "full.isthmus")
        self.assert_ends(result, 3)
        self.assertEqual(result.stdout, "")
        self.assertIn("No space left on device", result.stderr)

    def assert_room_runs_out(self, *arguments):
        """Files may grow to a KiB, less than a trace or a checkpoint: writes fail on the way."""
        limit = 1024
        result = subprocess.run(
            [BINARY, "run", "small.yaml", "--steps", "3", *arguments], cwd=self.folder, timeout=60,
            text=True, capture_output=True, stdin=subprocess.DEVNULL, check=False,
            restore_signals=False,  # Python ignores SIGXFSZ, and so do the ranks then
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.assert_ends(result, 3)
        self.assertEqual(result.stdout, "")
        self.assertIn("File too large", result.stderr)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["small.yaml"])

    def test_a_trace_that_there_is_no_room_for_leaves_no_file(self):
        self.assert_room_runs_out("--trace", "step.isthmus")

    def test_a_checkpoint_that_there_is_no_room_for_leaves_no_file(self):
        self.assert_room_runs_out("--checkpoint", "state")


if __name__ == "__main__":
    isthmus_cli.main()
