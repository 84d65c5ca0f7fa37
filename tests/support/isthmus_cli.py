"""What the end-to-end tests share: running the built `isthmus`, and ending as ctest expects."""

import os
import subprocess
import sys
import unittest

SOURCE_DIR = os.environ["ISTHMUS_SOURCE_DIR"]
BINARY = os.environ["ISTHMUS_BINARY"]
# Whether flows that meet can be simulated: SimGrid was there when this was built.
HAS_FLOW = os.path.exists(os.path.join(os.path.dirname(BINARY), "libisthmus_flow.so"))
SKIPPED = 77  # ctest shows a test that ends with this code as skipped.

# A decoder that two real ranks train in milliseconds a step.
SMALL_DECODER = """
cluster: h100-dgx
num_gpus: 2
workload: {sequence_length: 64, global_batch: 8}
modules:
  llm:
    model: {kind: decoder, num_layers: 2, hidden: 64, ffn_hidden: 256, num_heads: 4,
            vocab_size: 256}
    layout: {tp: 2}
    precision: fp32
"""


def run(*arguments, cwd=SOURCE_DIR, env=None, timeout=120):
    """Runs `isthmus ARGUMENTS...`; the result has returncode, stdout and stderr as text."""
    return subprocess.run([BINARY, *map(str, arguments)], cwd=cwd, timeout=timeout, text=True,
                          capture_output=True, stdin=subprocess.DEVNULL,
                          env={**os.environ, **(env or {})}, check=False)


class CliTest(unittest.TestCase):
    """A test case with the assertions every command line deserves."""

    maxDiff = None

    def assert_ends(self, result, returncode):
        self.assertEqual(result.returncode, returncode,
                         f"\nstdout:\n{result.stdout}\nstderr:\n{result.stderr}")

    def assert_user_error(self, result, *words):
        """Exit code 2, nothing on standard output, and all `words` on standard error."""
        self.assert_ends(result, 2)
        self.assertEqual(result.stdout, "")
        for word in words:
            self.assertIn(word, result.stderr)


def main():
    """unittest.main(), except that a file whose tests were all skipped ends with SKIPPED."""
    result = unittest.main(exit=False).result
    for _, reason in result.skipped:
        print(f"skipped: {reason}", file=sys.stderr)
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(SKIPPED if result.testsRun == len(result.skipped) > 0 else 0)
