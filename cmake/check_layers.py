#!/usr/bin/env python3
"""Checks which folder includes what (docs/architecture.md): `check_layers.py [ROOT]`.

Prints one line per trespass, `file:line: what is wrong (what is allowed)`, and exits with 1 if any.
"""

import pathlib
import re
import sys

# The folders of the product and what each may include besides itself.
ALLOWED = {
    "base": [],
    "topology": ["base"],
    "traces": ["base"],
    "profiles": ["base"],
    "plan": ["base", "topology", "traces"],
    "sim": ["base", "plan", "profiles", "topology", "traces"],
    "backend": ["base", "plan", "topology", "traces"],
    "scenarios": ["base", "plan", "profiles", "topology"],
    "reports": ["base", "traces"],
    "studies": ["base", "plan", "profiles", "reports", "scenarios", "sim", "topology", "traces"],
}
ALLOWED["cli"] = list(ALLOWED)
# tests and bench may include anything and are not looked at.

# Third-party headers (by the start of the path) and the folders whose sources may include them.
HOMES = [
    (("torch/", "ATen/", "c10/"), ["backend/torch", "backend/cuda"]),
    (("nccl.h", "cuda.h", "cuda_runtime", "cupti"), ["backend/cuda"]),
    (("simgrid/",), ["sim/network/flow"]),
    (("yaml-cpp/",), ["scenarios"]),
    (("nlohmann/",), ["traces", "reports", "studies", "cli"]),
    (("CLI/",), ["cli"]),
    (("spdlog/",), ["cli"]),
    (("google/protobuf/",), ["traces"]),
    (("zstd.h",), ["traces"]),
    (("boost/",), ["topology"]),
]
# Folders whose headers may show their library: only sources beside them include those.
SHOWING = ["backend/torch", "backend/cuda"]
# Headers that come from schemas count as their folder's internal ones.
GENERATED = ".pb.h"

INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')


def is_internal(path):
    return "internal" in path.split("/")[:-1] or path.endswith(GENERATED)


def check_ours(folder, included):
    """What is wrong with including one of our own headers, or None."""
    target = included.split("/")[0]
    if target == folder or target not in ALLOWED:
        return None
    if target not in ALLOWED[folder]:
        only = ", ".join(sorted(ALLOWED[folder])) or "itself"
        return f"{folder} may not include {target} (only {only})"
    if is_internal(included):
        return f"{included} is internal to {target} (include a header outside internal/)"
    return None


def check_library(source, included):
    """What is wrong with including a third-party header, or None."""
    for prefixes, homes in HOMES:
        if not included.startswith(prefixes):
            continue
        if not any(source.startswith(home + "/") for home in homes):
            return f"<{included}> may not be included here (only in {', '.join(homes)})"
        shows = any(source.startswith(home + "/") for home in SHOWING)
        if source.endswith(".h") and not is_internal(source) and not shows:
            return f"<{included}> may not be shown by a header (only .cc files and internal/)"
    return None


def check_file(root, source):
    """The trespasses of one file, as (line number, text)."""
    folder = source.split("/")[0]
    for number, line in enumerate((root / source).read_text().splitlines(), start=1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quoted, angled = match.groups()
        if quoted:
            problem = check_ours(folder, quoted)
            if "/" not in quoted:
                problem = f'"{quoted}" is not a full path from the root (write "{folder}/…")'
            elif source.endswith(".h") and quoted.endswith(GENERATED) and not is_internal(source):
                problem = f"{quoted} may not be shown by a header (only .cc files and internal/)"
        else:
            problem = check_library(source, angled)
        if problem:
            yield number, problem


def check_tree(root):
    """All trespasses below `root`, as printable lines in order of the files."""
    found = []
    for folder in sorted(ALLOWED):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cc"):
                source = path.relative_to(root).as_posix()
                found += [f"{source}:{number}: {text}" for number, text in check_file(root, source)]
    return found


if __name__ == "__main__":
    default_root = pathlib.Path(__file__).resolve().parent.parent
    problems = check_tree(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default_root)
    print("\n".join(problems) or "every include is within its layers")
    sys.exit(1 if problems else 0)
