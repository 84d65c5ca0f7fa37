"""A simulation's bytes don't depend on a locale with decimal commas, on processors or on threads that
libraries are told to use. (A simulation itself runs in one thread, whatever these say.)"""

import os
import shutil
import subprocess
import tempfile
import unittest

import isthmus_cli
from isthmus_cli import run

LOCALE = "de_DE.UTF-8"
SCENARIO = "scenarios/examples/llava-16gpu-noncolocated.yaml"
ENDINGS = ["isthmus", "pftrace", "json", "csv"]
MODELS = [("nccl", "auto"), ("nccl", "off"), ("flow", "auto"), ("flow", "off")]


def decimal_point(env):
    """What `env` makes a C program write in front of decimals."""
    return subprocess.run(["locale", "decimal_point"], env={**os.environ, **env}, capture_output=True,
                          text=True, check=False).stdout.strip()


def comma_locale(folder):
    """Variables that select a locale with decimal commas, made in `folder` if none is installed; None
    where that can't be done."""
    if shutil.which("locale") is None:
        return None
    installed = {"LC_ALL": LOCALE}
    if decimal_point(installed) == ",":
        return installed
    if shutil.which("localedef") is not None:
        subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", os.path.join(folder, LOCALE)],
                       capture_output=True, check=False)
    made = {"LC_ALL": LOCALE, "LOCPATH": folder}
    return made if decimal_point(made) == "," else None


class SurroundingsTest(isthmus_cli.CliTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)

    def bytes_of(self, options, env=None):
        """Everything a run writes: its JSON and a trace in every form that a figure goes into."""
        traces = [os.path.join(self.folder.name, f"trace.{ending}") for ending in ENDINGS]
        words = [word for trace in traces for word in ("--trace", trace)]
        result = run("simulate", SCENARIO, "--json", "--band", *options, *words, env=env)
        self.assert_ends(result, 0)
        written = [result.stdout.encode()]
        for trace in traces:
            with open(trace, "rb") as file:
                written.append(file.read())
        return written

    def assert_same_bytes(self, run_again):
        for network, fold in MODELS:
            if network == "flow" and not isthmus_cli.HAS_FLOW:
                continue
            with self.subTest(network=network, fold=fold):
                options = ["--network", network, "--fold", fold]
                # Not assertEqual: nobody wants to see where two traces differ first.
                self.assertTrue(self.bytes_of(options) == run_again(options))

    def test_a_second_run_gives_the_same_bytes(self):
        self.assert_same_bytes(self.bytes_of)

    def test_decimal_commas_change_nothing(self):
        env = comma_locale(self.folder.name)
        if env is None:
            self.skipTest("no locale with decimal commas is installed, and none can be made")
        self.assert_same_bytes(lambda options: self.bytes_of(options, env))

    def test_the_number_of_threads_changes_nothing(self):
        env = {"OMP_NUM_THREADS": "7", "OPENBLAS_NUM_THREADS": "7"}
        self.assert_same_bytes(lambda options: self.bytes_of(options, env))

    @unittest.skipUnless(hasattr(os, "sched_setaffinity"), "no processors to choose from")
    def test_the_number_of_processors_changes_nothing(self):
        allowed = os.sched_getaffinity(0)

        def on_one(options):
            os.sched_setaffinity(0, {min(allowed)})  # which the run inherits
            try:
                return self.bytes_of(options)
            finally:
                os.sched_setaffinity(0, allowed)

        self.assert_same_bytes(on_one)


if __name__ == "__main__":
    isthmus_cli.main()
