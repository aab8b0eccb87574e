"""Small charts as SVG: grouped bars with ranges, and lines. Plain shapes and text, no script."""
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 40, 52
COLOURS = ["#2b6cb0", "#c05621", "#2f855a", "#805ad5", "#b7791f"]


def nice_ticks(most, count=5):
    """0 and round numbers up to at least `most`."""
    if most <= 0:
        return [0, 1]
    step = 10 ** len(str(int(most / count))) / 10 if most / count >= 1 else 1
    while step > most / count:
        step /= 10
    for factor in (1, 2, 2.5, 5, 10):
        if step * factor * count >= most:
            step *= factor
            break
    last = 1
    while last * step < most * 0.999999:
        last += 1
    return [i * step for i in range(last + 1)]


def number(value):
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


class Chart:
    def __init__(self, title, unit, most):
        self.ticks = nice_ticks(most)
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
            f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>']
        self.text(LEFT, 20, title, anchor="start", size=14, weight="bold")
        self.text(14, TOP + (HEIGHT - TOP - BOTTOM) / 2, unit, turn=True)
        for tick in self.ticks:
            y = self.y(tick)
            self.parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#e2e8f0"/>')
            self.text(LEFT - 6, y + 4, number(tick), anchor="end")

    def y(self, value):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * max(value, 0) / self.ticks[-1]

    def text(self, x, y, words, anchor="middle", size=12, weight="normal", colour="#1a202c", turn=False):
        turned = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turn else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
                          f'font-weight="{weight}" fill="{colour}"{turned}>{escape(words)}</text>')

    def legend(self, names):
        x = LEFT
        for i, name in enumerate(names):
            self.parts.append(f'<rect x="{x}" y="{HEIGHT - 16}" width="10" height="10" fill="{COLOURS[i % len(COLOURS)]}"/>')
            self.text(x + 14, HEIGHT - 7, name, anchor="start")
            x += 14 + 7 * len(name) + 22

    def svg(self):
        return "\n".join(self.parts + ["</svg>"]) + "\n"


def bars(title, unit, groups, series, values, line=None):
    """values[series][group]: (value, low, high), low and high may be None; or None: nothing there.
    line: a value drawn across, with its name."""
    highest = max([v[2] if v[2] is not None else v[0] for row in values for v in row if v] + ([line[0]] if line else []))
    chart = Chart(title, unit, highest)
    room = (WIDTH - LEFT - RIGHT) / len(groups)
    width = min(40, room * 0.8 / len(series))
    for g, name in enumerate(groups):
        middle = LEFT + room * (g + 0.5)
        chart.text(middle, HEIGHT - BOTTOM + 16, name)
        for s in range(len(series)):
            value = values[s][g]
            if not value:
                continue
            x = middle + (s - len(series) / 2) * width
            y = chart.y(value[0])
            chart.parts.append(f'<rect x="{x + 1:.1f}" y="{y:.1f}" width="{width - 2:.1f}" '
                               f'height="{HEIGHT - BOTTOM - y:.1f}" fill="{COLOURS[s % len(COLOURS)]}"/>')
            if value[1] is not None:
                low, high, centre = chart.y(value[1]), chart.y(value[2]), x + width / 2
                chart.parts.append(f'<line x1="{centre:.1f}" y1="{low:.1f}" x2="{centre:.1f}" y2="{high:.1f}" stroke="#1a202c"/>')
                y = min(y, high)
            chart.text(x + width / 2, y - 4, number(value[0]), size=10)
    if line:
        y = chart.y(line[0])
        chart.parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#e53e3e" stroke-dasharray="5 4"/>')
        chart.text(WIDTH - RIGHT, y - 4, line[1], anchor="end", size=10, colour="#e53e3e")
    if len(series) > 1:
        chart.legend(series)
    return chart.svg()


def lines(title, unit, axis, places, series, values):
    """values[series][place]; places are numbers, evenly spaced on the page."""
    chart = Chart(title, unit, max(v for row in values for v in row if v is not None))
    room = (WIDTH - LEFT - RIGHT) / max(len(places), 1)
    xs = [LEFT + room * (i + 0.5) for i in range(len(places))]
    for x, place in zip(xs, places):
        chart.text(x, HEIGHT - BOTTOM + 16, f"{place:,}")
    chart.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 32, axis, colour="#4a5568")
    for s, row in enumerate(values):
        points = [(x, chart.y(v), v) for x, v in zip(xs, row) if v is not None]
        colour = COLOURS[s % len(COLOURS)]
        chart.parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="'
                           + " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points) + '"/>')
        for x, y, value in points:
            chart.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>')
            chart.text(x, y - 8, number(value), size=10)
    if len(series) > 1:
        chart.legend(series)
    return chart.svg()
