"""The layer check and the word check find what they are for, in small trees made here."""

import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.environ["ISTHMUS_SOURCE_DIR"], "cmake"))
import check_layers
import check_words


class TreeTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)

    def write(self, path, *lines):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text("\n".join(lines) + "\n")

    def layers(self):
        return check_layers.check_tree(self.root)

    def words(self):
        return check_words.check_tree(self.root)


class LayersTest(TreeTest):
    def test_twin_rule(self):
        self.write("sim/t.cc", '#include "base/units.h"', '#include "backend/executor.h"')
        self.assertEqual(self.layers(), [
            "sim/t.cc:2: sim may not include backend (only base, plan, profiles, topology, traces)"])

    def test_base_includes_nothing_of_ours(self):
        self.write("base/t.h", '#include "plan/program/op.h"')
        self.assertEqual(self.layers(), ["base/t.h:1: base may not include plan (only itself)"])

    def test_internal_headers_are_private(self):
        self.write("sim/t.cc", '#include "plan/internal/x.h"', '#include "sim/internal/y.h"')
        self.assertEqual(self.layers(), [
            "sim/t.cc:1: plan/internal/x.h is internal to plan (include a header outside internal/)"])

    def test_libraries_stay_home(self):
        self.write("plan/t.cc", "#include <yaml-cpp/yaml.h>", "#include <vector>")
        self.write("scenarios/t.h", "#include <yaml-cpp/yaml.h>")
        self.write("scenarios/internal/node.h", "#include <yaml-cpp/yaml.h>")
        self.write("scenarios/t.cc", "#include <yaml-cpp/yaml.h>")
        self.assertEqual(self.layers(), [
            "plan/t.cc:1: <yaml-cpp/yaml.h> may not be included here (only in scenarios)",
            "scenarios/t.h:1: <yaml-cpp/yaml.h> may not be shown by a header"
            " (only .cc files and internal/)"])

    def test_generated_headers_stay_in_sources(self):
        self.write("traces/t.h", '#include "traces/proto/trace.pb.h"')
        self.write("reports/t.cc", '#include "traces/proto/trace.pb.h"')
        self.assertEqual(len(self.layers()), 2)

    def test_includes_name_the_full_path(self):
        self.write("sim/t.cc", '#include "simulation.h"')
        self.assertEqual(len(self.layers()), 1)

    def test_tests_are_free(self):
        self.write("tests/unit/sim/t.cc", '#include "backend/executor.h"', "#include <CLI/CLI.hpp>")
        self.assertEqual(self.layers(), [])


class WordsTest(TreeTest):
    def test_finds_forbidden_words(self):
        self.write("sim/t.cc", "std::random_device d;", "exit(1);",
                   "auto t = std::chrono::system_clock::now();")
        self.assertEqual([line.split(" ")[1] for line in self.words()],
                         ["random_device", "exit(", "system_clock"])

    def test_cli_may_exit_and_comments_may_speak(self):
        self.write("cli/main.cc", "std::exit(2);")
        self.write("sim/t.cc", "// never random_device", "on_exit(x);")
        self.assertEqual(self.words(), [])

    def test_build_flags(self):
        self.write("CMakeLists.txt", "add_compile_options(-ffast-math)")
        self.assertEqual(len(self.words()), 1)


if __name__ == "__main__":
    unittest.main()
