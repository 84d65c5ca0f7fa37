"""scripts/gpu_package.sh: the folder for a machine with a GPU has all that its checks need."""

import os
import pathlib
import subprocess
import tempfile
import unittest

import isthmus_cli
from isthmus_cli import BINARY, SOURCE_DIR

BUILD = pathlib.Path(BINARY).parent
TORCH_PYTHON = pathlib.Path(SOURCE_DIR) / ".torch" / "bin" / "python"
HAS_GPU_SIDE = ((BUILD / "libisthmus_cuda.so").exists() and
                (BUILD / "tests" / "device_test").exists() and TORCH_PYTHON.exists())
IS_DEFAULT_BUILD = BUILD == pathlib.Path(SOURCE_DIR) / "build"
LIMIT_MIB = 60


def run(*command, cwd, env):
    return subprocess.run([str(word) for word in command], cwd=cwd, env=env, text=True,
                          capture_output=True, timeout=120, check=False)


@unittest.skipUnless(HAS_GPU_SIDE and IS_DEFAULT_BUILD, "this build has no GPU side in build/")
class GpuPackageTest(isthmus_cli.CliTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.package = pathlib.Path(folder.name) / "package"
        self.bare = {"PATH": "/usr/bin:/bin", "PYTHON": str(TORCH_PYTHON)}
        made = run(pathlib.Path(SOURCE_DIR) / "scripts" / "gpu_package.sh", "--no-build",
                   self.package, cwd=self.folder, env=os.environ)
        self.assert_ends(made, 0)

    def check_libraries(self):
        return run(self.package / "gpu_check.sh", "out", "--device", "cpu", "--only", "libraries",
                   cwd=self.folder, env=self.bare)

    def test_needs_nothing_of_the_machine_that_made_it(self):
        size = sum(file.stat().st_size for file in self.package.rglob("*") if file.is_file())
        self.assertLess(size, LIMIT_MIB << 20)
        checked = self.check_libraries()
        self.assert_ends(checked, 0)
        self.assertIn("all parts passed", checked.stdout)
        # A name of a shipped file: found in the package, wherever that lies.
        shown = run(self.package / "isthmus", "scenario", "show", self.package / "scenarios" /
                    "host" / "gpu-twin.yaml", cwd=self.folder,
                    env={**self.bare, "LD_LIBRARY_PATH": str(self.package / "lib")})
        self.assert_ends(shown, 0)

    def test_a_library_that_is_missing_is_named(self):
        for library in (self.package / "lib").glob("libyaml-cpp*"):
            library.unlink()
        checked = self.check_libraries()
        self.assert_ends(checked, 1)
        self.assertIn("not in the package:\nlibyaml-cpp", checked.stdout)


if __name__ == "__main__":
    isthmus_cli.main()
