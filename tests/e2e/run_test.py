"""`isthmus run` around its ranks, with a shell script in the place of isthmus-rank: what it refuses,
what it starts, what it says of ranks that fail, and that it leaves nothing behind."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import isthmus_cli
from isthmus_cli import BINARY, SOURCE_DIR

SCENARIO = """
cluster: h100-dgx
num_gpus: 2
workload: {sequence_length: 256, num_microbatches: 2}
modules:
  llm:
    model: {kind: decoder, num_layers: 2, hidden: 64, ffn_hidden: 256, num_heads: 4,
            vocab_size: 256}
    layout: {tp: 1}
"""


def runs(process_id):
    """Whether a process is there and has not ended."""
    try:
        return pathlib.Path(f"/proc/{process_id}/stat").read_text().split()[2] not in "ZX"
    except FileNotFoundError:
        return False


class RunTest(isthmus_cli.CliTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        shutil.copy(BINARY, self.folder / "isthmus")
        (self.folder / "small.yaml").write_text(SCENARIO)

    def make_rank(self, script):
        program = self.folder / "isthmus-rank"
        program.write_text("#!/bin/sh\n" + script)
        program.chmod(0o755)

    def command(self, *arguments):
        return [self.folder / "isthmus", "run", "small.yaml", *arguments]

    def run_it(self, *arguments):
        return subprocess.run(self.command(*arguments), cwd=self.folder, timeout=60, text=True,
                              capture_output=True, stdin=subprocess.DEVNULL, check=False)

    def test_the_answer_is_rank_0s_output_alone(self):
        self.make_rank('echo "answer of $RANK"; echo "step of $RANK" >&2')
        result = self.run_it()
        self.assert_ends(result, 0)
        self.assertEqual(result.stdout, "answer of 0\n")
        self.assertEqual(sorted(result.stderr.splitlines()),
                         ["rank 1: answer of 1", "rank 1: step of 1", "step of 0"])

    def test_ranks_get_what_was_asked_for(self):
        self.make_rank('echo "$WORLD_SIZE $MASTER_ADDR $OMP_NUM_THREADS $*"')
        result = self.run_it("--set", "seed=3", "--steps", "7", "--trace", "out.isthmus",
                             "--timeout", "9", "--json")
        self.assertEqual(result.stdout,
                         "2 127.0.0.1 1 small.yaml --set seed=3 --ranks-on cpu --steps 7 "
                         "--warmup 2 --trace out.isthmus --timeout 9 --json\n")
        self.assertFalse((self.folder / "out.isthmus").exists())

    def test_the_first_rank_that_fails_is_named_with_its_last_words(self):
        self.make_rank('[ "$RANK" = 0 ] && { sleep 0.3; exit 3; }; '
                       'echo "rank 1: error: cannot write x" >&2; exit 3')
        result = self.run_it()
        self.assert_ends(result, 3)
        self.assertEqual(result.stdout, "")
        self.assertIn("isthmus run: error: rank 1 ended with exit code 3\n  its last lines:\n"
                      "    rank 1: error: cannot write x\n", result.stderr)

    def test_a_mistake_of_the_user_in_a_rank_is_one_here(self):
        self.make_rank("exit 2")
        self.assert_ends(self.run_it(), 2)

    def test_a_killed_rank_is_a_failure_of_the_world(self):
        self.make_rank('[ "$RANK" = 1 ] && kill -9 $$; sleep 0.5; exit 3')
        result = self.run_it()
        self.assert_ends(result, 3)
        self.assertIn("rank 1 was killed by signal 9 (Killed); the system does that where memory "
                      "runs out", result.stderr)

    def test_an_interrupt_leaves_nothing_behind(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number):
                self.make_rank("echo $$ >&2; sleep 1000")
                process = subprocess.Popen(
                    self.command(), cwd=self.folder, text=True, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,  # A shell in the background ignores interrupts.
                    preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
                self.addCleanup(process.kill)
                ids = [int(process.stderr.readline().split()[-1]) for _ in range(2)]
                self.assertTrue(all(runs(process_id) for process_id in ids))
                process.send_signal(number)
                output, error = process.communicate(timeout=60)
                self.assertEqual(process.returncode, -number)
                self.assertEqual(output, "")
                self.assertIn("interrupted", error)
                self.assertFalse(any(runs(process_id) for process_id in ids))

    def test_what_nohup_ignores_ends_nothing(self):
        self.make_rank("trap '' HUP; echo up >&2; sleep 1; echo done")
        process = subprocess.Popen(["nohup", *self.command()], cwd=self.folder, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        self.assertTrue(any("up" in line for line in iter(process.stderr.readline, "")))
        process.send_signal(signal.SIGHUP)
        output, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(output, "done\n")

    def test_a_standard_error_that_takes_nothing_is_no_failure(self):
        self.make_rank('echo "step" >&2; echo "answer"; exit $CODE')
        for code in (0, 3):
            with self.subTest(code=code), open("/dev/full", "w", encoding="utf-8") as full:
                result = subprocess.run(self.command(), cwd=self.folder, timeout=60, stderr=full,
                                        env={**os.environ, "CODE": str(code)}, check=False,
                                        stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
                self.assertEqual(result.returncode, code)

    def test_a_standard_error_that_nobody_reads_any_more_is_no_failure(self):
        self.make_rank('echo "step" >&2; echo "answer"; exit $CODE')
        for code in (0, 3):
            with self.subTest(code=code):
                read, write = os.pipe()
                os.close(read)
                result = subprocess.run(self.command(), cwd=self.folder, timeout=60, stderr=write,
                                        env={**os.environ, "CODE": str(code)}, check=False,
                                        stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
                os.close(write)
                self.assertEqual(result.returncode, code)

    def test_a_checkpoint_is_not_written_over_what_is_resumed(self):
        self.make_rank("exit 0")
        result = self.run_it("--resume", "state.partial", "--checkpoint", "state/")
        self.assert_user_error(result, "state.partial: would overwrite what is read")

    def test_ranks_end_when_it_is_killed(self):
        self.make_rank("echo $$ >&2; exec sleep 1000")
        process = subprocess.Popen(self.command(), cwd=self.folder, text=True,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        ids = [int(process.stderr.readline().split()[-1]) for _ in range(2)]
        process.kill()
        process.communicate(timeout=60)
        for _ in range(500):
            if not any(runs(process_id) for process_id in ids):
                return
            time.sleep(0.01)
        self.fail("a rank outlived its launcher")

    def test_more_than_the_machine_remembers_is_a_user_error(self):
        self.make_rank("exit 0")
        # 405 B parameters on 32 ranks.
        result = self.run_it("--set", "num_gpus=32", "--set", "modules.llm.model=llama3-405b",
                             "--set", "modules.llm.layout.tp=8")
        self.assert_user_error(result, "of the 32 ranks take", "this machine has")

    def test_a_port_in_use_is_a_user_error(self):
        self.make_rank("exit 0")
        with socket.socket() as taken:
            taken.bind(("", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.assert_user_error(self.run_it("--port", str(port)),
                                   f"port {port}: Address already in use")
        self.assert_ends(self.run_it("--port", str(port)), 0)

    def test_a_build_without_ranks_says_how_to_get_them(self):
        self.assert_user_error(self.run_it(), "no real backend", "scripts/setup.sh --backend")

    def test_a_build_without_gpu_side_says_so(self):
        self.make_rank("exit 0")
        self.assert_user_error(self.run_it("--ranks-on", "gpu"), "libisthmus_cuda.so")

    def test_what_only_simulates_is_refused_at_once(self):
        self.make_rank("exit 0")
        self.assert_user_error(
            self.run_it("--set", "modules.llm.precision=fp8"),
            "small.yaml: error: can't be run on real ranks", "modules.llm.precision: fp8")

    def test_more_ranks_than_a_machine_takes_are_refused(self):
        self.make_rank("exit 0")
        result = self.run_it("--set", "num_gpus=32768", "--set", "workload.num_microbatches=1")
        self.assert_user_error(result, "32768 ranks", "docs/cluster.md")

    def test_a_trace_that_cannot_be_written_fails_before_anything_runs(self):
        self.make_rank("touch started")
        self.assert_user_error(self.run_it("--trace", "step.xyz"), "step.xyz")
        self.assert_user_error(self.run_it("--trace", "small.yaml"), "would overwrite")
        self.assertFalse((self.folder / "started").exists())

    def test_a_checkpoint_in_the_place_of_another_file_is_refused(self):
        self.make_rank("touch started")
        self.assert_user_error(self.run_it("--checkpoint", "small.yaml"), "would overwrite")
        self.assert_user_error(
            self.run_it("--checkpoint", "a.isthmus", "--trace", "a.isthmus"), "named twice")
        self.assertFalse((self.folder / "started").exists())

    def test_an_empty_name_is_none_that_was_left_out(self):
        self.make_rank("touch started")
        for option in ("--checkpoint", "--resume", "--trace"):
            self.assert_user_error(self.run_it(option, ""), f"{option}: its value is empty")
        self.assertFalse((self.folder / "started").exists())

    def test_mistakes_of_the_scenario_are_found_before_anything_runs(self):
        self.assert_user_error(self.run_it("--set", "training.betas=[0.9]"), "training.betas")

    def test_real_ranks_may_compute_in_what_no_profile_knows(self):
        self.make_rank("echo fine")
        self.assert_ends(self.run_it("--set", "modules.llm.precision=fp64"), 0)
        simulated = isthmus_cli.run("simulate", self.folder / "small.yaml", "--set",
                                    "modules.llm.precision=fp64")
        self.assert_user_error(simulated, "no kernels of fp64", "isthmus run")


if __name__ == "__main__":
    os.chdir(SOURCE_DIR)
    isthmus_cli.main()
