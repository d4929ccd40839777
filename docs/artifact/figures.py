# %% [markdown]
# # Figures of the lab
#
# Redraws every figure of `softiov lab report` from rows in CSV, with pandas and matplotlib. Jupyter and VS Code open
# this file as a notebook (percent format); `python3 figures.py` runs it as a program.
#
# ```sh
# softiov lab list --json > results/lab.json
# softiov lab run all --csv results/rows.csv
# LAB_RESULTS=results python3 figures.py
# ```
#
# A filled star is a value that a paper states and the model was calibrated on; a hollow star is one that the model
# predicts. Bars around values are intervals of 95 % over seeds (`--seeds`).
#
# Beside the figures, `figures.csv` counts the series and stars of each and has its settings, and `drawn.csv` has the
# numbers that were drawn.

# %%
import hashlib
import json
import os
from pathlib import Path

import matplotlib

matplotlib.use(os.environ.get("MPLBACKEND", "agg"))
import matplotlib.pyplot as plt
import pandas as pd

RESULTS = Path(os.environ.get("LAB_RESULTS", "."))
FIGURES = RESULTS / "figures"
FORMATS = os.environ.get("LAB_FORMATS", "svg,pdf").split(",")

# Equal rows give equal bytes: the identifiers in an SVG are hashes with a fixed salt, and files have no date.
matplotlib.rcdefaults()
plt.rcParams.update({
    "svg.hashsalt": "softiov",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "figure.figsize": (7.2, 4.0),
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.3,
})
NO_DATE = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}

# %% [markdown]
# ## Rows, units and definitions
#
# Parameters are text, as `softiov` prints them; metrics are numbers. Units are those of the codebook beside the rows.

# %%
listing = json.loads((RESULTS / "lab.json").read_text())
columns = pd.read_csv(RESULTS / "rows-columns.csv", keep_default_na=False).set_index("column")
metrics = list(columns.index[columns["kind"] == "metric"])
rows = pd.read_csv(
    RESULTS / "rows.csv", keep_default_na=False, na_values={name: [""] for name in metrics},
    dtype={name: float if name in metrics else str for name in columns.index},
)


def text(value):
    """Returns a parameter's value as the rows have it."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


# Settings of duration do not change the model, so rows of a shorter run keep their stars.
DURATIONS = {"measure_ms", "warm_up_ms"}
defaults = {setting["name"]: text(setting["default"]) for setting in listing["settings"]}
settings = [name for name in columns.index[columns["kind"] == "setting"] if name not in DURATIONS]

# %% [markdown]
# ## Several seeds
#
# A point's value is the mean over its seeds. The interval is Student's t, two-sided, 95 %.

# %%
STUDENT = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
           2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
           2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042]


def half_interval(values):
    """Returns half of the interval around the mean of values: 0 for a single value."""
    count = values.count()
    if count < 2:
        return 0.0
    t = STUDENT[count - 2] if count - 2 < len(STUDENT) else 1.960
    return t * values.std(ddof=1) / count**0.5


# %% [markdown]
# ## Drawing
#
# A figure has places along x, variants side by side (`split`), and series of metrics on one or two scales.

# %%
WHOLE = "cpu_total_pct"  # a paper's total, where a figure stacks the domains that add up to it
DOMAINS = [["cpu_guest"], ["cpu_xen", "cpu_hypervisor"], ["cpu_dom0", "cpu_driver_domain"]]
DOMAIN_COLOURS = ["#1b4f8f", "#f2b25c", "#4f9d69"]  # dark, light and between, so that a black-and-white print tells them apart
HATCHES = ["", "//", "..", "xx", "\\\\", "++", "oo", "--"]
DASHES = ["-", "--", ":", "-.", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)), (0, (6, 3))]
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "<"]
STATED = {True: "stated, calibrated on", False: "stated, predicted"}


class Figure:
    """Figure of an experiment, drawn from the rows of one set of settings."""

    def __init__(self, experiment, definition, data, has_stars):
        self.experiment, self.definition, self.has_stars = experiment, definition, has_stars
        self.scales = [scale for scale in (definition["left"], definition["right"]) if scale]
        self.axes = definition["x"] + ([definition["split"]] if definition["split"] else [])
        names = list(dict.fromkeys(metric for scale in self.scales for metric, _ in scale["series"]))
        points = data.groupby(self.axes, sort=False)[names]
        self.mean, self.half = points.mean(), points.agg(half_interval)
        order = [key if isinstance(key, tuple) else (key,) for key in self.mean.index]
        self.mean.index = self.half.index = pd.MultiIndex.from_tuples(order)
        inner = len(definition["x"])
        self.places = list(dict.fromkeys(key[:inner] for key in order))
        self.variants = list(dict.fromkeys(key[inner:] for key in order))
        is_number = all(len(place) == 1 and place[0].lstrip("-").isdigit() for place in self.places)
        self.is_to_scale = definition["kind"] == "lines" and is_number
        self.x = [int(place[0]) for place in self.places] if self.is_to_scale else list(range(len(self.places)))
        # Where each value is, for stars: (metric, variant, place) to (axes, x, lower end).
        self.at = {}
        # Metric, variant and the marks that matplotlib draws for each series.
        self.series, self.stars = [], []

    def label(self, axis, value):
        """Returns the label of an axis' value."""
        values = [text(known) for known in self.experiment["params"][axis]]
        labels = self.experiment["labels"].get(axis)
        return labels[values.index(value)] if labels and value in values else value

    def values(self, metric, variant):
        """Returns mean and half of the interval of a metric at each place; points without a row are gaps."""
        keys = pd.MultiIndex.from_tuples([place + variant for place in self.places])
        return [table[metric].reindex(keys).to_list() for table in (self.mean, self.half)]

    def colour(self, metric):
        """Returns a metric's colour: a domain's is equal in all figures, others' in those of the experiment."""
        domain = {name: number for number, names in enumerate(DOMAINS) for name in names}
        of_domain = [number for name, number in domain.items() if metric.startswith(name)]
        others = [it["name"] for it in self.experiment["metrics"] if not it["name"].startswith(tuple(domain))]
        return DOMAIN_COLOURS[of_domain[0]] if of_domain else f"C{(len(DOMAINS) + others.index(metric)) % 10}"

    def draw(self):
        """Draws all series and stars, and returns the matplotlib figure."""
        drawn, left = plt.subplots()
        axes = [left, left.twinx()] if len(self.scales) > 1 else [left]
        for number, (scale, on) in enumerate(zip(self.scales, axes)):
            on.set_ylabel(f"{scale['title']}, {self.unit(scale)}".rstrip(", "))
            is_bars = number == 0 and self.definition["kind"] != "lines"
            (self.bars if is_bars else self.lines)(scale, on)
        for stated in self.experiment["stated"] if self.has_stars else []:
            self.star(stated)
        left.set_xlabel(self.definition["x_title"])
        if not self.is_to_scale:
            names = ["\n".join(map(self.label, self.definition["x"], place)) for place in self.places]
            left.set_xticks(self.x, names)
        for on in axes:
            low, high = on.get_ylim()
            on.set_ylim(min(low, 0), high * 1.05 if high > 0 else 1)
        left.set_title(f"{self.experiment['title']}\n{self.definition['title']}", fontsize=10)
        # A legend entry for each series and each kind of star.
        entries = {label: mark for on in axes for mark, label in zip(*on.get_legend_handles_labels())}
        left.legend(
            entries.values(), entries.keys(), loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3, fontsize=8
        )
        return drawn

    def unit(self, scale):
        """Returns the unit of a scale: that of its metrics in the codebook, or its own if they have several."""
        units = {columns.loc[metric, "unit"] for metric, _ in scale["series"]}
        return scale["unit"] if len(units) > 1 else units.pop()

    def name(self, label, variant):
        """Returns the label of a series in the legend."""
        return f"{label}, {self.label(self.definition['split'], variant[0])}" if variant else label

    def lines(self, scale, on):
        """Draws the series of a scale as lines."""
        for which, variant in enumerate(self.variants):
            for metric, label in scale["series"]:
                mean, half = self.values(metric, variant)
                marks = on.errorbar(
                    self.x, mean, yerr=half if any(half) else None, capsize=2, color=self.colour(metric),
                    linestyle=DASHES[which % len(DASHES)], marker=MARKERS[which % len(MARKERS)], markersize=4,
                    label=self.name(label, variant),
                )
                self.add(metric, variant, marks, on, self.x, [0.0] * len(self.x))

    def bars(self, scale, on):
        """Draws the series of a scale as bars, on top of each other or side by side."""
        is_stacked = self.definition["kind"] == "stacked"
        side_by_side = len(self.variants) * (1 if is_stacked else len(scale["series"]))
        width = 0.8 / side_by_side
        for which, variant in enumerate(self.variants):
            base = [0.0] * len(self.places)
            for number, (metric, label) in enumerate(scale["series"]):
                bar = which if is_stacked else which * len(scale["series"]) + number
                x = [at + (bar - (side_by_side - 1) / 2) * width for at in self.x]
                mean, half = self.values(metric, variant)
                marks = on.bar(
                    x, mean, width * 0.95, bottom=base, yerr=half if any(half) else None, capsize=2,
                    color=self.colour(metric), hatch=HATCHES[which % len(HATCHES)], edgecolor="white",
                    linewidth=0.3, label=self.name(label, variant),
                )
                self.add(metric, variant, marks, on, x, list(base))
                if is_stacked:
                    self.at.update({(WHOLE, variant, place): (on, x[n], 0.0) for n, place in enumerate(self.places)})
                    base = [below + (value if value == value else 0.0) for below, value in zip(base, mean)]

    def add(self, metric, variant, marks, on, x, base):
        """Remembers the marks of a series, and where stars beside it are."""
        self.series.append((metric, variant, marks))
        self.at.update({(metric, variant, place): (on, x[n], base[n]) for n, place in enumerate(self.places)})

    def star(self, stated):
        """Draws a value that a paper states, if the figure shows its metric at its point."""
        key = tuple(stated["point"].get(axis) for axis in self.axes)
        inner = len(self.definition["x"])
        found = self.at.get((stated["metric"], key[inner:], key[:inner]))
        if found is None:
            return
        on, x, base = found
        (mark,) = on.plot(
            x, base + stated["value"], marker="*", markersize=12, color="black", linestyle="none", zorder=5,
            fillstyle="full" if stated["calibrated"] else "none", gid=f"stated-{len(self.stars) + 1}",
            label=STATED[stated["calibrated"]],
        )
        self.stars.append((stated["metric"], key, mark, base))

    def numbers(self):
        """Returns the numbers that are drawn, read back from matplotlib's marks: point, metric, value, half, stated."""
        found = []
        for metric, variant, marks in self.series:
            is_bars = hasattr(marks, "patches")
            values = [bar.get_height() for bar in marks.patches] if is_bars else marks.lines[0].get_ydata()
            around = marks.errorbar if is_bars else marks
            ends = around.lines[2][0].get_segments() if around and around.lines[2] else [None] * len(values)
            for place, value, end in zip(self.places, values, ends):
                half = 0.0 if end is None or len(end) == 0 else (end[1][1] - end[0][1]) / 2
                found.append((self.point(place + variant), metric, value, half, False))
        for metric, key, mark, base in self.stars:
            found.append((self.point(key), metric, mark.get_ydata()[0] - base, 0.0, True))
        numbers = pd.DataFrame(found, columns=["point", "metric", "value", "half", "stated"])
        return numbers.dropna(subset="value")

    def point(self, key):
        """Returns the parameters of a point as text."""
        return ";".join(f"{axis}={value}" for axis, value in zip(self.axes, key))


# %% [markdown]
# ## All figures
#
# Rows with changed settings are figures of their own, without stars, since papers state values for their own machines.
# The settings are in the file's name, or their hash is if the name would be too long for a file system.

# %%
LONGEST_NAME = 120


def file_name(parts):
    """Returns the name of a figure's file without its format: all parts, or the first two and a hash of the others."""
    name = "-".join(parts)
    return name if len(name) <= LONGEST_NAME else "-".join([*parts[:2], hashlib.sha256(name.encode()).hexdigest()[:12]])


FIGURES.mkdir(parents=True, exist_ok=True)
drawn, numbers = [], []
for experiment in listing["experiments"]:
    own = rows[rows["experiment"] == experiment["name"]]
    others = [name for name in settings if name not in experiment["params"]]
    for values, data in own.groupby(others, sort=False) if others else [((), own)]:
        changed = [f"{name}={value}" for name, value in zip(others, values) if value not in ("", defaults[name])]
        for index, definition in enumerate(experiment["figures"] if len(data) else []):
            figure = Figure(experiment, definition, data, has_stars=not changed)
            picture = figure.draw()
            name = file_name([experiment["name"], str(index + 1), *changed])
            for format in FORMATS:
                path = FIGURES / f"{name}.{format}"
                picture.savefig(path, format=format, bbox_inches="tight", metadata=NO_DATE.get(format))
            plt.close(picture)
            drawn.append((name, len(figure.series), len(figure.stars), " ".join(changed)))
            numbers.append(figure.numbers().assign(figure=name))

# %% [markdown]
# The tables: series and stars of each figure, and each drawn number.

# %%
table = pd.DataFrame(drawn, columns=["figure", "series", "stars", "settings"])
table.to_csv(FIGURES / "figures.csv", index=False)
pd.concat(numbers)[["figure", "point", "metric", "value", "half", "stated"]].to_csv(FIGURES / "drawn.csv", index=False)
print(f"{len(table)} figures with {table['series'].sum()} series and {table['stars'].sum()} stars in {FIGURES}")
