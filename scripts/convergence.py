#!/usr/bin/env python3
"""Trains the captions task of tests/data/captions_vlm.yaml on real CPU ranks and compares losses.

    scripts/convergence.py layouts    [--steps 100] [--isthmus build/isthmus] -o DIR
    scripts/convergence.py precisions [--steps 300] [--isthmus build/isthmus] -o DIR

layouts: the paper's sweeps A7 (frozen LLM) and A8 (trained LLM) on 8 ranks in FP32, all rows of
tests/data/convergence_layouts.csv; the encoder is frozen, its projector trained. The loss of every
step is compared with the homogeneous run on 4 ranks (tp 4). Exit code 1 where one is 0.01 away.
precisions: FP32, BF16 and FP16 (with loss scaling) in one colocated layout of 4 ranks.

Writes NAME.csv (the losses, a column a run), NAME.svg and, of layouts, layouts_worst.csv.
"""

import argparse
import csv
import json
import math
import pathlib
import subprocess
import sys

import line_plot

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCENARIO = ROOT / "tests" / "data" / "captions_vlm.yaml"
ROWS = ROOT / "tests" / "data" / "convergence_layouts.csv"
MOST = 0.01  # from the homogeneous run, in any step
CONVERGED = 0.5  # of the first loss, at most, in the mean of the last steps
BESIDE = 0.1  # of FP32's mean of the last steps
DIGITS = 7  # of a loss behind the point: what FP32 has
BATCH = 8  # samples a step, as the scenario has it


def train(options, name, values):
    """Losses by step."""
    words = [str(options.isthmus), "run", str(SCENARIO), "--json", "--steps", str(options.steps)]
    for key, value in values.items():
        words += ["--set", f"{key}={value}"]
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{name}: {' '.join(words)}\n{result.stderr}")
    answer = json.loads(result.stdout)
    losses = [math.nan if step["loss"] is None else round(step["loss"], DIGITS)
              for step in answer["steps"]]
    skipped = f", {answer['num_skipped']} steps skipped" if answer["num_skipped"] else ""
    print(f"{name:<14} {losses[0]:.4f} to {losses[-1]:.4f}{skipped}", file=sys.stderr, flush=True)
    return losses


def layout(tp, pp, dp, first_rank=0):
    return f"{{tp: {tp}, pp: {pp}, dp: {dp}, first_rank: {first_rank}}}"


def layout_values(row):
    tp, pp, dp = (int(row[key]) for key in ("llm_tp", "llm_pp", "llm_dp"))
    apart = row["mode"] == "non-colocated"
    # As the paper's Fig. 9 has it: the LLM first, the encoder behind or on its ranks.
    encoder = layout(row["enc_tp"], 1, row["enc_dp"], tp * pp * dp if apart else 0)
    # Two microbatches, or one a stage; the losses don't depend on it.
    microbatch = max(1, BATCH // (dp * max(2, pp)))
    return {"modules.llm.layout": layout(tp, pp, dp), "modules.vision.layout": encoder,
            "workload.microbatch_size": microbatch}


def sweep(options):
    with open(ROWS, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    losses, worst = {}, []
    for llm in ("frozen", "trained"):
        common = {"modules.vision.frozen": "true",
                  "modules.llm.frozen": "true" if llm == "frozen" else "false"}
        base = f"H.{llm}"
        losses[base] = train(options, base, common | {
            "num_gpus": 4, "modules.llm.layout": layout(4, 1, 1),
            "modules.vision.layout": "inherit", "workload.microbatch_size": BATCH // 2})
        for row in rows:
            if row["llm"] != llm:
                continue
            losses[row["id"]] = train(options, row["id"], common | layout_values(row))
            gap = max(abs(a - b) for a, b in zip(losses[row["id"]], losses[base]))
            worst.append({"id": row["id"], "llm": llm, "mode": row["mode"],
                          "first_loss": losses[row["id"]][0], "last_loss": losses[row["id"]][-1],
                          "worst_gap": f"{gap:.1e}"})
    write_table(options.output / "layouts_worst.csv", worst)
    series = {}
    for llm in ("frozen", "trained"):
        for mode in ("colocated", "non-colocated"):
            ids = [row["id"] for row in rows if row["llm"] == llm and row["mode"] == mode]
            series[f"{llm} LLM, {mode}"] = [
                max(abs(losses[name][step] - losses[f"H.{llm}"][step]) for name in ids)
                for step in range(options.steps)]
    line_plot.write(options.output / "layouts.svg", series, logarithmic=True,
                    title="Largest distance of a layout's loss from the homogeneous run")
    most = max(worst, key=lambda row: float(row["worst_gap"]))
    print(f"{len(worst)} layouts, {options.steps} steps: at most {most['worst_gap']} from the "
          f"homogeneous run ({most['id']})")
    return losses, float(most["worst_gap"]) < MOST


def precisions(options):
    losses = {}
    for name in ("fp32", "bf16", "fp16"):
        losses[name] = train(options, name, {
            "num_gpus": 4, "modules.vision.precision": name, "modules.llm.precision": name,
            "modules.vision.layout": layout(1, 1, 4), "modules.llm.layout": layout(2, 1, 2),
            "workload.microbatch_size": 2})
    line_plot.write(options.output / "precisions.svg", losses, logarithmic=False,
                    title="Loss of the captions task, colocated: encoder dp 4, LLM tp 2 dp 2")
    last = {}
    for name, values in losses.items():
        tail = values[-20:]
        last[name] = sum(tail) / len(tail)
        print(f"{name}: {values[0]:.4f} at step 1, {last[name]:.4f} over the last {len(tail)} steps")
    return losses, all(mean < CONVERGED * losses[name][0] and abs(mean - last["fp32"]) < BESIDE
                       for name, mean in last.items())


def write_table(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("layouts", "precisions"))
    parser.add_argument("--isthmus", default=ROOT / "build" / "isthmus", type=pathlib.Path)
    parser.add_argument("--steps", type=int)
    parser.add_argument("-o", "--output", required=True, type=pathlib.Path)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    if options.steps is None:
        options.steps = 100 if options.what == "layouts" else 300
    losses, good = sweep(options) if options.what == "layouts" else precisions(options)
    write_table(options.output / f"{options.what}.csv",
                [{"step": step + 1} | {name: values[step] for name, values in losses.items()}
                 for step in range(options.steps)])
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
