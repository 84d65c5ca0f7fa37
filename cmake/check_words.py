#!/usr/bin/env python3
"""Checks that sources keep off words that break a rule of the house: `check_words.py [ROOT]`.

Prints one line per find, `file:line: word (why, what instead)`, and exits with 1 if any. Comments
don't count.
"""

import pathlib
import re
import sys

PRODUCT = ["base", "topology", "traces", "profiles", "plan", "sim", "backend", "scenarios",
           "reports", "studies", "cli"]
TESTS = ["tests", "bench"]
# Folders whose results must be a function of their inputs alone.
PURE = ["base", "topology", "profiles", "plan", "sim", "scenarios", "reports"]

# (pattern, folders it is forbidden in, why and what instead)
RULES = [
    (r"\brandom_device\b", PRODUCT + TESTS, "not repeatable; take a base::RandomStream"),
    (r"\bs?rand\s*\(", PRODUCT + TESTS, "not ours to seed; take a base::RandomStream"),
    (r"\bstd::\w+_distribution\b", PRODUCT, "differs by library; base::RandomStream maps numbers"),
    (r"\bsystem_clock\b", PRODUCT + TESTS, "wall clock; results may not depend on it"),
    (r"\b(steady|high_resolution)_clock\b", PURE, "real time; results may not depend on it"),
    (r"\bgetenv\s*\(", PURE, "the environment is no input of a simulation"),
    (r"\b(quick_|_)?exit\s*\(", [f for f in PRODUCT if f != "cli"],
     "only cli ends the process; throw base::Error or use ISTHMUS_CHECK"),
    (r"\bassert\s*\(", PRODUCT, "use ISTHMUS_CHECK or ISTHMUS_DCHECK"),
    (r"\bstd::(ranges::)?views\b", PRODUCT + TESTS, "the linter's compiler can't parse it"),
    (r"\bsource_location\b", PRODUCT + TESTS, "the linter's compiler can't parse it"),
    (r"\bstd::(cout|cerr|clog)\b", [f for f in PRODUCT if f != "cli"],
     "only cli prints; return text or report to an observer"),
]
BUILD_RULES = [(r"-ffast-math|-march=native", "changes results from machine to machine")]


def code_of(line):
    """The line without its comment."""
    return re.sub(r"//.*", "", line)


def findings_in(root, path, rules):
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        code = code_of(line) if path.suffix in (".h", ".cc") else line
        for pattern, reason in rules:
            match = re.search(pattern, code)
            if match:
                yield f"{path.relative_to(root).as_posix()}:{number}: {match.group(0)} ({reason})"


def check_tree(root):
    """All finds below `root`, as printable lines in order of the files."""
    found = []
    for folder in sorted(PRODUCT + TESTS):
        rules = [(pattern, reason) for pattern, folders, reason in RULES if folder in folders]
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cc"):
                found += findings_in(root, path, rules)
    for path in [root / "CMakeLists.txt", root / "CMakePresets.json",
                 *sorted((root / "cmake").glob("*.cmake"))]:
        if path.exists():
            found += findings_in(root, path, BUILD_RULES)
    return found


if __name__ == "__main__":
    default_root = pathlib.Path(__file__).resolve().parent.parent
    problems = check_tree(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default_root)
    print("\n".join(problems) or "no forbidden word")
    sys.exit(1 if problems else 0)
