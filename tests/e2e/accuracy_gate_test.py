"""Predictions don't get worse: errors of a fixed set of published rows beside those recorded.

Fails when the median absolute error of a set grows by 0.3 points, or a row's by 2 points, or a row
is no longer predicted; when the gains of a table of the multimodal paper lose a sign, 0.3 points of
median error or 0.02 of correlation; when verdicts on memory lose 0.02 of precision or recall. scripts/make_accuracy_gate.sh records the errors anew.
"""

import csv
import json
import pathlib
import statistics
import sys

import isthmus_cli
from isthmus_cli import SOURCE_DIR, run

sys.path.insert(0, str(pathlib.Path(SOURCE_DIR) / "scripts"))
import accuracy_gate  # noqa: E402  (found through the path above)

DATA = pathlib.Path(SOURCE_DIR) / "tests" / "data"
SETS = DATA / "accuracy_gate_sets.csv"
FILES = [DATA / "accuracy_gate.csv", DATA / "accuracy_gate_memory.csv", DATA / "paper_runs.csv"]
MOST_ROWS = 500
MEDIAN_POINTS = 0.3
ROW_POINTS = 2.0
# By measure: by how much it may get worse, and whether more is better.
SCORES = {"signs_right_within_3_pct": (0.5, True), "median_abs_error_pct": (0.3, False),
          "correlation": (0.02, True), "precision": (0.02, True), "recall": (0.02, True)}
KINDS = [("step time", "error", "step_time_error_pct"),
         ("memory", "memory_error", "memory_error_pct")]


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def table(title, rows):
    lines = [f"{name:24} {kind:9} {before:>9} {after:>9}" for name, kind, before, after in rows]
    return f"\n{title}\n{'':24} {'':9} {'before %':>9} {'after %':>9}\n" + "\n".join(lines)


class AccuracyGateTest(isthmus_cli.CliTest):
    @classmethod
    def setUpClass(cls):
        result = run("validate", *FILES, "--sets", SETS, "--json", timeout=600)
        assert result.returncode in (0, 1), result.stderr
        cls.answer = json.loads(result.stdout)
        cls.rows = {row["row_id"]: row for row in cls.answer["rows"]}
        cls.recorded = {row["row_id"]: row for row in read(DATA / "accuracy_gate_errors.csv")}
        cls.sets = {}
        for row in read(SETS):
            cls.sets.setdefault(row["set"], []).append(row["row_id"])

    def pairs(self, key, column, row_ids):
        """(row id, recorded, predicted now or None), in per cent, of rows with a record."""
        for row_id in row_ids:
            before = self.recorded[row_id][column]
            if before:
                now = self.rows[row_id][key]
                yield row_id, float(before), None if now is None else now * 100

    def test_the_gate_is_complete_and_small(self):
        self.assertEqual(set(self.rows), set(self.recorded))
        self.assertLessEqual(len(self.rows), MOST_ROWS)

    def test_no_row_gets_worse_by_2_points(self):
        worse = []
        for kind, key, column in KINDS:
            for row_id, before, now in self.pairs(key, column, self.rows):
                if now is None:
                    worse.append((row_id, kind, f"{before:+.2f}", "skipped"))
                elif abs(now) - abs(before) > ROW_POINTS:
                    worse.append((row_id, kind, f"{before:+.2f}", f"{now:+.2f}"))
        self.assertFalse(worse, table("rows that got worse by more than 2 points", worse))

    def test_no_median_gets_worse_by_0_3_points(self):
        medians, worse = [], []
        for kind, key, column in KINDS:
            for name, row_ids in self.sets.items():
                found = [(abs(before), abs(now)) for _, before, now
                         in self.pairs(key, column, row_ids) if now is not None]
                if not found:
                    continue
                before, now = map(statistics.median, zip(*found))
                medians.append((name, kind, f"{before:.2f}", f"{now:.2f}"))
                if now - before > MEDIAN_POINTS:
                    worse.append(medians[-1])
        self.assertFalse(worse, table("medians that got worse by more than 0.3 points", worse) +
                         table("all medians", medians))

    def test_no_gain_or_verdict_gets_worse(self):
        now = {(subject, measure): value
               for subject, measure, value in accuracy_gate.scores(self.answer)}
        recorded = {(row["subject"], row["measure"]): float(row["value"])
                    for row in read(DATA / "accuracy_gate_scores.csv")}
        self.assertEqual(set(now), set(recorded))
        self.assertTrue(any(subject.startswith("out of memory") for subject, _ in recorded))
        lines, worse = [], []
        for key, before in recorded.items():
            most, more_is_better = SCORES[key[1]]
            loss = before - now[key] if more_is_better else now[key] - before
            lines.append(f"{key[0]:60} {key[1]:26} {before:9.4f} {now[key]:9.4f}")
            if loss > most + 1e-9:
                worse.append(lines[-1])
        self.assertFalse(worse, "\ngot worse (before, after)\n" + "\n".join(worse) +
                         "\nall\n" + "\n".join(lines))


if __name__ == "__main__":
    isthmus_cli.main()
