"""The rows of the accuracy gate and the errors recorded for them.

Rows are facts with their sources, cut down to the columns that the loader reads. The paper's rows
lie in tests/data/paper_runs.csv already.
"""

import argparse
import csv
import json
import pathlib
import subprocess
import tempfile

MOST_ROWS = 500
TRAINING_SETS = ["dense_bf16", "dense_fp8", "dense_fp8_2407", "mlperf", "megatron_bridge",
                 "long_sequence", "a100_korthikanti", "memory_te_dense", "memory_nanotron"]
MEMORY_SETS = ["memory_1f1b"]
PAPER_SETS = ["paper_A2", "paper_A3", "paper_A4"]
# Rows that ran out of memory and rows that ran, of the same sweep: so many of each.
VERDICT_SETS = [("memory_oom_hagemann", "memory"), ("memory_fit_hagemann", "training")]
VERDICT_ROWS = 40
TRAINING_COLUMNS = """row_id source source_path source_date license framework framework_version gpu
    gpu_mem_gb n_gpus gpus_per_node task model params_b layers hidden ffn_hidden heads kv_heads
    head_dim vocab seq_len experts attention_type TP CP PP VPP EP DP fsdp_zero seq_parallel GBS MBS
    grad_accum precision recompute dist_opt overlap_flags step_time_s derived_step_time_s
    peak_mem_gib mem_metric confidence""".split()
MEMORY_COLUMNS = """row_id source source_path source_date license framework gpu gpu_mem_gb n_gpus
    model params_b layers hidden ffn_hidden heads kv_heads head_dim vocab seq_len TP CP PP VPP DP
    fsdp_zero seq_parallel GBS MBS precision recompute overlap_flags component value_gib kind
    mem_metric""".split()


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write(path, columns, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def cut(source, target, columns, ids):
    rows = [row for row in read(source) if row["row_id"] in ids]
    write(target, [column for column in columns if column in rows[0]], rows)


def evenly(rows, count):
    """`count` of the rows, spread over the sweep."""
    return [rows[index * len(rows) // count] for index in range(count)]


def choose_rows(data, tests):
    all_sets = read(data / "validation_sets.csv")
    sets = [row for row in all_sets if row["set"] in TRAINING_SETS + MEMORY_SETS + PAPER_SETS]
    for name, _ in VERDICT_SETS:
        sets += evenly([row for row in all_sets if row["set"] == name], VERDICT_ROWS)
    assert len(sets) <= MOST_ROWS, f"{len(sets)} rows are too many"
    write(tests / "accuracy_gate_sets.csv", ["set", "row_id"], sets)
    wanted = {"training": list(TRAINING_SETS), "memory": list(MEMORY_SETS)}
    for name, kind in VERDICT_SETS:
        wanted[kind].append(name)
    ids = {kind: {row["row_id"] for row in sets if row["set"] in names}
           for kind, names in wanted.items()}
    cut(data / "training_runs.csv", tests / "accuracy_gate.csv", TRAINING_COLUMNS, ids["training"])
    cut(data / "memory_points.csv", tests / "accuracy_gate_memory.csv", MEMORY_COLUMNS,
        ids["memory"])


def predict(binary, tests):
    """The answer of `isthmus validate` for all rows of the gate."""
    with tempfile.TemporaryDirectory() as folder:
        answer = pathlib.Path(folder) / "answer.json"
        subprocess.run([binary, "validate", tests / "accuracy_gate.csv",
                        tests / "accuracy_gate_memory.csv", tests / "paper_runs.csv", "--sets",
                        tests / "accuracy_gate_sets.csv", "--json", "-o", answer], check=False)
        return json.loads(answer.read_text())


def scores(answer):
    """(subject, measure, value) of what is judged as a whole: gains by table, verdicts."""
    for gains in answer["gain_summary"]:
        for measure in ("signs_right_within_3_pct", "median_abs_error_pct", "correlation"):
            if gains[measure] is not None:
                yield f"gains {gains['table']}", measure, gains[measure]
    for verdict in answer["verdicts"]:
        for measure in ("precision", "recall"):
            yield f"out of memory {verdict['framework']}", measure, verdict[measure]


def record(binary, tests):
    """Writes per cent of step time and memory by row, empty where there is no figure, and scores."""
    def percent(value):
        return "" if value is None else f"{value * 100:.2f}"
    answer = predict(binary, tests)
    rows = [{"row_id": row["row_id"], "step_time_error_pct": percent(row["error"]),
             "memory_error_pct": percent(row["memory_error"])}
            for row in answer["rows"]]
    write(tests / "accuracy_gate_errors.csv",
          ["row_id", "step_time_error_pct", "memory_error_pct"], rows)
    write(tests / "accuracy_gate_scores.csv", ["subject", "measure", "value"],
          [{"subject": subject, "measure": measure, "value": f"{value:.4f}"}
           for subject, measure, value in scores(answer)])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--tests", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    if arguments.data:
        choose_rows(arguments.data, arguments.tests)
    record(arguments.binary, arguments.tests)


if __name__ == "__main__":
    main()
