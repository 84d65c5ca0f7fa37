#!/usr/bin/env python3
"""Wall time and memory of `isthmus simulate` against GPUs, microbatches and layers.

    scripts/scaling_study.py [gpus] [microbatches] [layers] [acceptance] [--isthmus build/isthmus] -o DIR

Every run is a process of its own, start-up included; figures are medians of up to 5 runs. Sweeps
start from scenarios/scale/gpt3-175b-4096.yaml (TP8 PP8, every layer an op of its own) at 1,024 GPUs,
32 microbatches and 96 layers. acceptance: the figures that the project has limits for.

Writes NAME.csv, pictures of the sweeps, and conditions.txt. All of it takes a few minutes. Ends with 1 if
acceptance is over a limit.
"""

import argparse
import csv
import datetime
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

import line_plot

ROOT = pathlib.Path(__file__).resolve().parent.parent
BASE = ROOT / "scenarios/scale/gpt3-175b-4096.yaml"
RANKS_OF_A_REPLICA = 64  # TP8 PP8
MODES = [("nccl", "auto"), ("nccl", "off"), ("flow", "auto"), ("flow", "off")]
MAX_RUNS = 5
ENOUGH_S = 4.0  # of one figure: no further run of it once they took so long

# Scenarios, network, folding, limits of seconds and MB. Of several scenarios the slowest and the largest
# count; where the limit is what the flow model may take longer than the closed forms, the one that does
# most.
ALL = "all shipped"
UP_TO_4096 = "all shipped up to 4,096 GPUs"
MORE_THAN_NCCL = "more than nccl"
ACCEPTANCE = [
    ("scale/gpt3-175b-1024", "flow", "off", 5, None),
    ("scale/gpt3-175b-1024", "flow", "auto", 0.2, None),
    ("scale/gpt3-175b-4096", "flow", "off", 8, None),
    ("scale/llama3-405b-16384", "nccl", "off", 20, 4000),
    ("scale/llama3-405b-16384", "flow", "off", 60, None),
    (ALL, "nccl", "auto", 0.05, 40),
    (UP_TO_4096, "flow", "auto", (0.1, MORE_THAN_NCCL), 60),
]


class Measured:
    """The medians of several runs of one command, and what they all say."""

    def __init__(self, isthmus, scenario, network, fold, settings=()):
        # Through a shell: a process's peak memory is at least what started it had.
        self.command = ["sh", "-c", '"$@"; exit $?', "sh", str(isthmus), "simulate", str(scenario),
                        "--network", network, "--fold", fold, "--json", "--timing"]
        for setting in settings:
            self.command += ["--set", setting]
        walls, cpus, peaks = [], [], []
        while not walls or (len(walls) < MAX_RUNS and sum(walls) < ENOUGH_S):
            wall_s, cpu_s, figures = self.run()
            walls.append(wall_s)
            cpus.append(cpu_s)
            peaks.append(figures["engine"]["peak_rss_bytes"])
        self.runs = len(walls)
        self.wall_s = statistics.median(walls)
        self.cpu_s = statistics.median(cpus)
        self.peak_bytes = statistics.median(peaks)
        self.num_ranks = figures["num_ranks"]
        self.ops = figures["engine"]["ops"]

    def run(self):
        cpu_s = cpu_of_children()
        begin = time.monotonic()
        done = subprocess.run(self.command, capture_output=True, text=True, check=False)
        wall_s = time.monotonic() - begin
        if done.returncode not in (0, 1):  # 1: doesn't fit into memory
            sys.exit(f"{' '.join(self.command)}: {done.stderr}")
        return wall_s, cpu_of_children() - cpu_s, json.loads(done.stdout)


def cpu_of_children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def settings_of(gpus, microbatches, layers):
    return [f"nodes={gpus // 8}", f"modules.llm.layout.dp={gpus // RANKS_OF_A_REPLICA}",
            f"workload.num_microbatches={microbatches}", f"modules.llm.model.num_layers={layers}"]


SWEEPS = {
    "gpus": [(gpus, 32, 96) for gpus in (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)],
    "microbatches": [(1024, count, 96) for count in (8, 16, 32, 64, 128, 256)],
    "layers": [(1024, 32, count) for count in (24, 48, 96, 192, 384)],
}


def mode_name(network, fold):
    return f"{network}, {'folded' if fold == 'auto' else 'unfolded'}"


def sweep(name, isthmus, output):
    rows = []
    for gpus, microbatches, layers in SWEEPS[name]:
        for network, fold in MODES:
            run = Measured(isthmus, BASE, network, fold, settings_of(gpus, microbatches, layers))
            rows.append({
                "gpus": gpus, "microbatches": microbatches, "layers": layers,
                "mode": mode_name(network, fold), "runs": run.runs, "wall_s": round(run.wall_s, 4),
                "cpu_s": round(run.cpu_s, 3), "peak_mb": round(run.peak_bytes / 1e6, 1),
                "ops": run.ops, "ops_per_cpu_s": round(run.ops / run.cpu_s),
                "bytes_per_op": round(run.peak_bytes / run.ops, 1)})
            print_row(rows[-1])
    write_csv(output / f"{name}.csv", rows)
    for figure, title in (("wall_s", "Wall time of the process, s"), ("peak_mb", "Peak memory, MB")):
        series = {}
        for row in rows:
            series.setdefault(row["mode"], []).append(row[figure])
        line_plot.write(output / f"{name}_{figure}.svg", series, logarithmic=True, title=title,
                        ticks=[f"{row[name]:,}" for row in rows[::len(MODES)]], x_title=name)


def shipped():
    files = [ROOT / "scenarios/quickstart.yaml"]
    for folder in ("examples", "paper", "scale"):
        files += sorted((ROOT / "scenarios" / folder).glob("**/*.yaml"))
    return files


def accept(isthmus, output):
    """Whether everything is within its limits."""
    rows = []
    for what, network, fold, limit, limit_mb in ACCEPTANCE:
        limit_s, of = limit if isinstance(limit, tuple) else (limit, "")
        files = shipped() if what in (ALL, UP_TO_4096) else [ROOT / "scenarios" / f"{what}.yaml"]
        measured = {file.stem: Measured(isthmus, file, network, fold) for file in files}
        if what == UP_TO_4096:
            measured = {name: run for name, run in measured.items() if run.num_ranks <= 4096}
        walls = {name: run.wall_s for name, run in measured.items()}
        if of == MORE_THAN_NCCL:
            for file in files:
                if file.stem in walls:
                    walls[file.stem] -= Measured(isthmus, file, "nccl", fold).wall_s
        slowest = max(walls, key=walls.get)
        largest = max(measured, key=lambda name: measured[name].peak_bytes)
        over = walls[slowest] > limit_s or (limit_mb and measured[largest].peak_bytes / 1e6 > limit_mb)
        rows.append({"scenarios": what, "mode": mode_name(network, fold),
                     "verdict": "over" if over else "within", "limit_s": f"{limit_s} {of}".strip(),
                     "wall_s": round(walls[slowest], 4), "slowest": slowest,
                     "limit_mb": limit_mb or "", "peak_mb": round(measured[largest].peak_bytes / 1e6, 1),
                     "largest": largest})
        print_row(rows[-1])
    write_csv(output / "acceptance.csv", rows)
    return all(row["verdict"] == "within" for row in rows)


def print_row(row):
    print(", ".join(f"{key} {value}" for key, value in row.items()), flush=True)


def write_csv(path, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_conditions(isthmus, output):
    version = subprocess.run([isthmus, "--version"], capture_output=True, text=True, check=True).stdout
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        processors = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    (output / "conditions.txt").write_text(
        f"{version.strip()}, {datetime.date.today()}, {processors[0]}, {len(os.sched_getaffinity(0))} cores\n",
        encoding="utf-8")


def main():
    parts = [*SWEEPS, "acceptance"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"{', '.join(parts)}; all if none is named")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, help="folder of the results")
    parser.add_argument("--isthmus", type=pathlib.Path, default=ROOT / "build/isthmus")
    options = parser.parse_args()
    for part in options.parts:
        if part not in parts:
            parser.error(f"{part}: not a part; allowed: {', '.join(parts)}")
    options.output.mkdir(parents=True, exist_ok=True)
    within = True
    for part in options.parts or parts:
        if part == "acceptance":
            within = accept(options.isthmus, options.output)
        else:
            sweep(part, options.isthmus, options.output)
    write_conditions(options.isthmus, options.output)
    if not within:
        sys.exit("over a limit: acceptance.csv")


if __name__ == "__main__":
    main()
