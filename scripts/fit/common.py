"""What the fit scripts share: reading rows, the held-out fifth, residuals, and the profile file."""

import argparse
import csv
import datetime
import hashlib
import pathlib

import numpy as np
from scipy.optimize import minimize

QUOTED_ONE = '"1"'  # a text in YAML, as all units


def arguments(description, gpus, source):
    """The command line of a fit script; `source` is the table it reads."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", required=True, type=pathlib.Path, metavar="DIR",
                        help=f"folder that holds {source}")
    parser.add_argument("--gpu", required=True, choices=gpus, help="which machine to fit")
    parser.add_argument("-o", "--output", required=True, type=pathlib.Path, metavar="FILE",
                        help="profile file to write")
    parser.add_argument("--date", default=datetime.date.today().isoformat(),
                        help="date to state in the profile (default: today)")
    return parser.parse_args()


# What makes two rows of a table the same shape, whichever the GPU, the data type and the source.
SHAPES = {
    "kernels.csv": ("kernel_class", "m", "n", "k", "batch", "heads", "kv_heads", "seqlen", "head_dim", "causal", "shape"),
    "collectives.csv": ("collective", "n_gpus", "n_nodes", "size_bytes"),
}


def read_rows(path):
    """Rows of a table as dicts, with `shape_key` and `held_out` added."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["shape_key"] = " ".join(row[name] for name in SHAPES[path.name])
        row["held_out"] = held_out(row["shape_key"])
    return rows


def held_out(shape_key):
    """True for the fifth of the shapes that no fit may see: a shape that was measured twice, or on
    two GPUs, is either seen by all fits or by none."""
    return int(hashlib.sha1(shape_key.encode()).hexdigest(), 16) % 5 == 0


def column(rows, name):
    return np.array([float(row[name]) for row in rows])


def mask(rows):
    """Held-out mask."""
    return np.array([row["held_out"] for row in rows])


def row_range(rows):
    """`K00001..K05741 (2873 rows)`; the rows between that don't belong are not counted."""
    ids = sorted(row["row_id"] for row in rows)
    if len(ids) == 1:
        return f"{ids[0]} (1 row)"
    return f"{ids[0]}..{ids[-1]} ({len(ids)} rows)"


def minimize_simplex(loss, start, rounds=4, **options):
    """Nelder-Mead, restarted from where it ended: deterministic and needs no gradient."""
    point = np.array(start, float)
    best = None
    for _ in range(rounds):
        best = minimize(loss, point, method="Nelder-Mead",
                        options=dict(maxiter=2000, xatol=1e-4, fatol=1e-8, adaptive=True, **options))
        point = best.x
    return best


def residual(predicted, measured):
    """Quantiles of |predicted / measured - 1| as a profile states them."""
    error = np.abs(np.asarray(predicted) / np.asarray(measured) - 1)
    return {"median": round(float(np.median(error)), 4), "p90": round(float(np.quantile(error, 0.9)), 4),
            "rows": int(len(error))}


def describe(label, predicted, measured):
    error = np.asarray(predicted) / np.asarray(measured) - 1
    if len(error):
        print(f"{label:58s} med {np.median(abs(error)):6.1%} p90 {np.quantile(abs(error), .9):6.1%} "
              f"bias {np.median(error):+6.1%} n {len(error)}")


def number(value):
    """Four significant digits: more than any of these fits can tell apart."""
    text = f"{value:.4g}"
    if "e" in text:
        mantissa, exponent = text.split("e")
        if "." not in mantissa:
            mantissa += ".0"
        return f"{mantissa}e{int(exponent):+03d}"
    return text


class Profile:
    """Collects parameters and writes the YAML that scenarios/ reads."""

    def __init__(self, name, date, command, table):
        self.name, self.date, self.command = name, date, command
        self.table = table
        self.lines = []

    def set(self, key, value, unit, mark, source, quality=None):
        fields = [f"value: {number(value)}", f"unit: {unit if unit != '1' else QUOTED_ONE}", f"mark: {mark}"]
        if quality:
            fields.append("residual: {median: %s, p90: %s, rows: %d}"
                          % (quality["median"], quality["p90"], quality["rows"]))
        fields.append(f'source: "{source}"')
        self.lines.append(f"  {key}: {{{', '.join(fields)}}}")

    def write(self, path):
        digest = hashlib.sha256(self.table.read_bytes()).hexdigest()
        text = [
            "# Written by a fit script; change the script or its data and run it again.",
            "profile:",
            f"  name: {self.name}",
            f"  date: {self.date}",
            f"  command: {self.command}",
            f"  input: {{file: {self.table.name}, sha256: {digest}}}",
            "parameters:",
        ]
        path.write_text("\n".join(text + self.lines) + "\n", encoding="utf-8")
