"""The fit scripts make the shipped profiles again from the tables of measurements.

Needs numpy, scipy and the tables (ISTHMUS_REFERENCE_DATA, or ../shared/reference/data); skipped
without. With Debian 12's versions of both, which the shipped files were made with, the bytes are the
same; with others values may differ in the last digits, what went in and which rows were used not.
"""

import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.environ.get("ISTHMUS_SOURCE_DIR", ".")).resolve()
DATA = pathlib.Path(os.environ.get("ISTHMUS_REFERENCE_DATA", ROOT.parent / "shared" / "reference" / "data"))
TOLERANCE = 0.02
LINE = re.compile(r"  (?P<key>[a-z0-9_.]+): \{value: (?P<value>[^,]+), unit: (?P<unit>[^,]+), mark: (?P<mark>\w+)"
                  r"(?P<rest>.*)\}$")


DATE = re.compile(r"  date: (\S+)")
DEBIAN_12 = ("1.24.2", "1.10.1")


def are_debian_s():
    """Whether numpy and scipy are those that the shipped files were made with."""
    import numpy
    import scipy
    return (numpy.__version__, scipy.__version__) == DEBIAN_12


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def parameters(path):
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        match = LINE.match(line)
        if match:
            found[match["key"]] = match
    return found


def check(script, table, name):
    shipped = ROOT / "scenarios" / "profiles" / name
    gpu = name.split(".")[0]
    with tempfile.TemporaryDirectory() as folder:
        made = pathlib.Path(folder) / name
        subprocess.run([sys.executable, str(ROOT / "scripts" / "fit" / script), "--data", str(DATA), "--gpu", gpu,
                        "--date", DATE.search(shipped.read_text(encoding="utf-8"))[1], "-o", str(made)],
                       check=True, stdout=subprocess.DEVNULL)
        digest = hashlib.sha256((DATA / table).read_bytes()).hexdigest()
        assert digest in made.read_text(encoding="utf-8"), f"{name}: the input's SHA-256 is not stated"
        assert digest in shipped.read_text(encoding="utf-8"), f"{name}: made from other data than {DATA / table}"
        same = made.read_bytes() == shipped.read_bytes()
        assert same or not are_debian_s(), f"{name}: other bytes; run scripts/fit/fit_all.sh"
        ours, theirs = parameters(made), parameters(shipped)
    assert list(ours) == list(theirs), f"{name}: other keys: {set(ours) ^ set(theirs)}"
    assert len(ours) > 40, f"{name}: only {len(ours)} parameters were read"
    for key, again in ours.items():
        before = theirs[key]
        assert (again["unit"], again["mark"]) == (before["unit"], before["mark"]), f"{name}: {key}"
        new, old = float(again["value"]), float(before["value"])
        assert abs(new - old) <= TOLERANCE * abs(old) + 1e-12, f"{name}: {key} is {new}, shipped {old}"
    print(f"{name}: {len(ours)} parameters made again")


def main():
    if not (DATA / "kernels.csv").exists():
        skip(f"no measurements in {DATA}")
    try:
        import numpy  # noqa: F401
        import scipy  # noqa: F401
    except ImportError as error:
        skip(f"{error}; python3 -m pip install numpy scipy")
    for gpu in ("h100-sxm", "h200-sxm", "a100-sxm"):
        check("fit_kernels.py", "kernels.csv", f"{gpu}.kernels.yaml")
        check("fit_collectives.py", "collectives.csv", f"{gpu}.collectives.yaml")


if __name__ == "__main__":
    main()
