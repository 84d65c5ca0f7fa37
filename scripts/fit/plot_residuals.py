#!/usr/bin/env python3
"""Draws how far the models lie from measured rows: docs/models/plots/*.svg.

    scripts/fit/plot_residuals.py --data DIR -o docs/models/plots

Predicted over measured, less one, against the size of the work, of the rows that score.py scores;
clock.svg shows the burst model over the measured time of long products. Needs numpy and scipy; the
same data and profiles give the same bytes.
"""

import argparse
import math
import pathlib
import sys

import numpy as np

import common
import fit_kernels
import gemm
import score
import shipped

WIDTH, HEIGHT = 760, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 240, 34, 44
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#7f7f7f", "#8c564b",
           "#bcbd22", "#e377c2")
MAX_POINTS = 400  # of a series; more are thinned evenly
LIMIT = 0.3  # of the error axis: what lies beyond is drawn on the edge


class Axes:
    """A frame with a logarithmic x and a linear y."""

    def __init__(self, xs, low, high):
        self.decades = (math.floor(math.log10(min(xs))), math.ceil(math.log10(max(xs))))
        self.low, self.high = low, high

    def x(self, value):
        first, last = self.decades
        return LEFT + (math.log10(value) - first) / (last - first) * (WIDTH - LEFT - RIGHT)

    def y(self, value):
        value = min(max(value, self.low), self.high)
        return TOP + (self.high - value) / (self.high - self.low) * (HEIGHT - TOP - BOTTOM)


def thinned(points):
    if len(points) <= MAX_POINTS:
        return points
    return [points[int(i * len(points) / MAX_POINTS)] for i in range(MAX_POINTS)]


def text(x, y, words, anchor="start", size=11, colour="#333"):
    return f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}">{words}</text>'


def frame(axes, title, x_title, y_title, ticks, y_text):
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    lines = [text(LEFT, 20, title, size=13),
             text((LEFT + right) / 2, HEIGHT - 8, x_title, "middle"),
             f'<text transform="translate(14 {(TOP + bottom) / 2:.0f}) rotate(-90)" font-size="11" '
             f'text-anchor="middle" fill="#333">{y_title}</text>']
    first, last = axes.decades
    step = max(1, (last - first) // 6)
    for decade in range(first, last + 1, step):
        x = axes.x(10.0 ** decade)
        lines.append(f'<path d="M{x:.1f} {TOP}V{bottom}" stroke="#eee"/>')
        lines.append(text(x, bottom + 16, f'10<tspan dy="-4" font-size="8">{decade}</tspan>', "middle"))
    for tick in ticks:
        y = axes.y(tick)
        lines.append(f'<path d="M{LEFT} {y:.1f}H{right}" stroke="{"#888" if tick == 0 else "#ddd"}"/>')
        lines.append(text(LEFT - 6, y + 4, y_text(tick), "end"))
    lines.append(f'<path d="M{LEFT} {TOP}H{right}V{bottom}H{LEFT}Z" fill="none" stroke="#666"/>')
    return lines


def series(axes, index, name, points):
    colour = COLOURS[index % len(COLOURS)]
    dots = "".join(f"M{axes.x(x):.1f} {axes.y(y):.1f}h0" for x, y in thinned(sorted(points)))
    y = TOP + 10 + 16 * index
    return [f'<path d="{dots}" stroke="{colour}" stroke-width="3.4" stroke-linecap="round" stroke-opacity="0.55"/>',
            f'<circle cx="{WIDTH - RIGHT + 14}" cy="{y - 4}" r="4" fill="{colour}"/>',
            text(WIDTH - RIGHT + 24, y, name)]


def write(path, title, x_title, named_points, low, high, ticks, y_title, y_text):
    axes = Axes([x for points in named_points.values() for x, _ in points], low, high)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    lines += frame(axes, title, x_title, y_title, ticks, y_text)
    for index, (name, points) in enumerate(named_points.items()):
        lines += series(axes, index, name, points)
    path.write_text("\n".join(lines + ["</svg>"]) + "\n", encoding="utf-8")
    print(path)


def errors(path, title, x_title, groups):
    """Groups of one name are one series; its median error is written beside it."""
    named, scored = {}, {}
    for name, group in groups:
        named.setdefault(name, []).extend(zip(group.x, group.error))
        scored.setdefault(name, []).append(group.error)
    shown = {f"{name}: {np.median(abs(np.concatenate(scored[name]))):.1%}": points for name, points in named.items()}
    write(path, title, x_title, shown, -LIMIT, LIMIT, (-0.3, -0.2, -0.1, 0, 0.1, 0.2, 0.3),
          "predicted / measured − 1", lambda tick: f"{tick:+.0%}" if tick else "0")


def gpu(group):
    return group.gpu.split("-")[0].upper()


def clock_points(rows):
    named = {}
    for name, tables in score.GEMM_TABLES.items():
        values = shipped.parameters(name)
        for dtype, word in tables:
            if dtype == "fp8_promoted":
                continue
            m, n, k, t = gemm.shapes(fit_kernels.gemm_rows(rows, fit_kernels.GPUS[name], word))
            big = (np.minimum(np.minimum(m, n), k) >= 2048) & (t > 0.2e-3)
            ratio = shipped.gemm_seconds(values, dtype, m, n, k)[big] / t[big]
            named[f"{name} {dtype}"] = list(zip(t[big] * 1e3, ratio))
    return named


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, type=pathlib.Path, metavar="DIR")
    parser.add_argument("-o", "--output", required=True, type=pathlib.Path, metavar="DIR")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    groups = score.all_groups(args.data)
    held_out = "shapes that no fit has seen"

    errors(args.output / "gemm.svg", f"Matrix products, {held_out}", "FLOP",
           [(f"{gpu(g)} {g.kind.split(',')[0]}", g) for g in groups if g.model == "gemm" and "all" in g.kind])
    errors(args.output / "attention.svg", "Attention, each shape left out of a fit once", "span, tokens",
           [(f"{g.kind.split()[0]} {g.kind.split()[1]}{' A100' if g.gpu.startswith('a') else ''}", g)
            for g in groups if g.model == "attention" and g.how == score.LEFT_OUT])
    errors(args.output / "memory_bound.svg", "Memory-bound kernels", "bytes",
           [(f"{gpu(g)} {g.kind}", g) for g in groups if g.model == "memory-bound"])
    errors(args.output / "collectives_in_node.svg", f"Collectives in a node, {held_out}", "bus bytes",
           [(f"{gpu(g)} {g.kind.split()[0]}", g) for g in groups
            if g.model == "collective in a node" and "all" in g.kind.split(", ")[1] and g.gpu == "h100-sxm"])
    errors(args.output / "collectives_across_nodes.svg", "Collectives across nodes", "bus bytes",
           [(g.kind.removesuffix(", all sizes"), g) for g in groups
            if g.model == "collective across nodes" and "above" not in g.kind])
    write(args.output / "clock.svg", "Sustained clock: burst model over measured time", "measured time, ms",
          clock_points(common.read_rows(args.data / "kernels.csv")), 0.7, 1.1, (0.7, 0.8, 0.9, 1.0, 1.1),
          "burst model / measured", lambda tick: f"{tick:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
