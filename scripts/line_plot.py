"""Lines over steps as an SVG file, from the standard library alone."""

import math

WIDTH, HEIGHT = 760, 320
LEFT, RIGHT, TOP, BOTTOM = 72, 190, 34, 44
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf")


class Axis:
    """The values of all series over the height of the frame."""

    def __init__(self, values, logarithmic):
        self.logarithmic = logarithmic
        values = [self.scale(value) for value in values if value > 0 or not logarithmic]
        self.low, self.high = math.floor(min(values)), math.ceil(max(values))
        self.high += self.high == self.low

    def scale(self, value):
        return math.log10(value) if self.logarithmic else value

    def y(self, value):
        if self.logarithmic and value <= 0:
            return HEIGHT - BOTTOM
        share = (self.scale(value) - self.low) / (self.high - self.low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    def ticks(self):
        for tick in range(self.low, self.high + 1):
            yield (10.0 ** tick, f"1e{tick}") if self.logarithmic else (tick, str(tick))


def text(x, y, words, anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'


def write(path, series, logarithmic, title, x_title="step", ticks=None):
    """`series`: values by step from 1 on, by name. Zeros are on a logarithmic axis's lower edge.

    `ticks`: words for every step, in place of some steps' numbers.
    """
    axis = Axis([value for values in series.values() for value in values], logarithmic)
    num_steps = max(len(values) for values in series.values())
    width = WIDTH - LEFT - RIGHT

    def x(step):
        return LEFT + width * (step - 1) / max(1, num_steps - 1)

    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
             'font-family="sans-serif" font-size="11">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', text(LEFT, 20, title)]
    for value, words in axis.ticks():
        y = axis.y(value)
        lines.append(f'<line x1="{LEFT}" x2="{LEFT + width}" y1="{y:.1f}" y2="{y:.1f}" '
                     'stroke="#ddd"/>')
        lines.append(text(LEFT - 6, y + 4, words, "end"))
    some = sorted({1, num_steps // 4, num_steps // 2, 3 * num_steps // 4, num_steps} - {0})
    for step, words in enumerate(ticks, 1) if ticks else ((step, step) for step in some):
        lines.append(text(x(step), HEIGHT - BOTTOM + 16, words, "middle"))
    lines.append(text(LEFT + width / 2, HEIGHT - 10, x_title, "middle"))
    for index, (name, values) in enumerate(series.items()):
        colour = COLOURS[index % len(COLOURS)]
        points = " ".join(f"{x(step + 1):.1f},{axis.y(value):.1f}"
                          for step, value in enumerate(values))
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}"/>')
        y = TOP + 16 * index + 8
        lines.append(f'<line x1="{WIDTH - RIGHT + 10}" x2="{WIDTH - RIGHT + 30}" y1="{y}" y2="{y}" '
                     f'stroke="{colour}"/>')
        lines.append(text(WIDTH - RIGHT + 36, y + 4, name))
    lines.append("</svg>")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
