"""Draw a result as a chart, with the throughput or latency and the CPU time of each client."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kafkacore.bench.result import Entry, FigureName, Result
from kafkacore.bench.table import entries_by_case

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OURS_COLOUR, PEER_COLOUR, VOID_COLOUR = "#d9622b", "#8a9bab", "#e3e3e3"
#: Opacity of the bar of each percentile.
_SHADES = {"p50": 1.0, "p99": 0.65, "p99.9": 0.4}


def draw(result: Result, target: Path) -> None:
    """Draw a result to a PNG file.

    Parameters
    ----------
    result:
        Result of :func:`kafkacore.bench.runner.run_bench`.
    target:
        File to write.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    cases = list(entries_by_case(result).items())
    heights = [len(entries) * 0.32 + 0.85 for _, entries in cases]
    figure, grid = plt.subplots(
        len(cases),
        2,
        figsize=(11, sum(heights) + 0.9),
        squeeze=False,
        layout="constrained",
        gridspec_kw={"height_ratios": heights},
    )
    for (case, entries), (left, right) in zip(cases, grid, strict=True):
        if any("ms_per_batch" in entry["median"] for entry in entries):
            _bars(left, entries, "ms_per_batch", 1.0, "milliseconds per batch", ".0f")
        elif case.rate is None:
            _bars(left, entries, "records_per_s", 1e6, "million records per second", ".2f")
        else:
            _latencies(left, entries)
        left.set_title(case.title, loc="left", fontsize=10)
        _bars(right, entries, "cpu_s_per_million", 1.0, "client's CPU seconds per million records", ".2f")
        right.set_yticklabels([])
    machine = result["machine"]
    place = f"{machine['cpu']}, {machine['cores']} cores, {machine['python']}"
    rounds = result["options"]["rounds"]
    note = "one round" if rounds == 1 else f"median of {rounds} rounds, whiskers: slowest and fastest"
    figure.suptitle(
        f"kafkacore bench, {result['broker']}\n{place}; {note}", fontsize=11, x=0.01, ha="left", va="top"
    )
    figure.savefig(target, dpi=130)
    plt.close(figure)


def draw_stages(result: Result, target: Path) -> None:
    """Draw the stages of a result with ``stages_us`` to a PNG file: where records spend their time."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    (entry,) = result["results"]
    paths = entry["median"].get("stages_us", {})
    shown = {"typical": "middle 10 %", "slowest": "slowest 1 %"}
    figure, grid = plt.subplots(
        len(shown) * len(paths), 1, figsize=(11, 7), squeeze=False, layout="constrained"
    )
    colours = mpl.colormaps["tab10"]
    numbers: dict[str, int] = {}
    bars = [(name, path) for name in shown for path in paths]
    for (name, path), axes in zip(bars, grid[:, 0], strict=True):
        left = 0.0
        for stage, figures in paths[path].items():
            if stage == "total":
                continue
            colour = colours(numbers.setdefault(stage, len(numbers)))
            axes.barh(0, figures[name], left=left, color=colour, label=stage)
            if figures[name] > paths[path]["total"][name] * 0.04:
                axes.text(left + figures[name] / 2, 0, f"{figures[name]:,.0f}", ha="center", fontsize=8)
            left += figures[name]
        axes.set_title(f"{shown[name]} of the records, {path} after {left:,.0f} µs", loc="left", fontsize=10)
        axes.set_yticks([])
        axes.tick_params(length=0, labelsize=8)
        for side in axes.spines.values():
            side.set_visible(False)
    handles = {
        text: handle
        for axes in grid[:, 0]
        for handle, text in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, fontsize=8)
    machine = result["machine"]
    figure.suptitle(
        f"kafkacore bench latency, {entry['rate']:,.0f} records per second, {result['broker']}\n"
        f"{machine['cpu']}, {machine['cores']} cores, {machine['python']}; microseconds in each stage",
        fontsize=11,
        x=0.01,
        ha="left",
    )
    figure.savefig(target, dpi=130)
    plt.close(figure)


def _bars(
    axes: Axes, entries: Sequence[Entry], figure: FigureName, unit: float, label: str, form: str
) -> None:
    first = entries[0]
    values = [entry["median"].get(figure, 0.0) / unit for entry in entries]
    spreads = [entry["spread"].get(figure, (0.0, 0.0)) for entry in entries]
    whiskers = [
        [max(0.0, value - low / unit) for value, (low, _) in zip(values, spreads, strict=True)],
        [max(0.0, high / unit - value) for value, (_, high) in zip(values, spreads, strict=True)],
    ]
    colours = [OURS_COLOUR if entry is first else PEER_COLOUR for entry in entries]
    axes.barh(range(len(entries)), values, color=colours, height=0.72)
    axes.errorbar(
        values, range(len(entries)), xerr=whiskers, fmt="none", ecolor="0.25", elinewidth=1, capsize=2
    )
    most = max([value + up for value, up in zip(values, whiskers[1], strict=True)], default=1.0) or 1.0
    for at, (entry, value) in enumerate(zip(entries, values, strict=True)):
        text = f"void: {entry['void']}" if entry["void"] else format(value, form)
        times = entry["advantage"].get(figure)
        if times is not None and entry is not first and not entry["void"]:
            text += f"   ours {times:.1f}x"
        axes.text(value + whiskers[1][at] + most * 0.015, at, text, va="center", fontsize=9)
    axes.set_xlim(0, most * 1.32)
    _frame(axes, entries, label)


def _latencies(axes: Axes, entries: Sequence[Entry]) -> None:
    height = 0.8 / len(_SHADES)
    for row, entry in enumerate(entries):
        latency = entry["median"].get("latency_ms", {})
        for number, (name, shade) in enumerate(_SHADES.items()):
            value = latency.get(name)
            if value is None:
                continue
            colour = OURS_COLOUR if not row else PEER_COLOUR
            at = row + (number - 1) * height
            axes.barh(at, value, height=height, color=colour, alpha=shade)
            axes.text(value * 1.05, at, f"{name} {value:.2f}", va="center", fontsize=7)
        if entry["void"]:
            axes.text(1.0, row, f"void: {entry['void']}", va="center", fontsize=9)
    axes.set_xscale("log")
    # Start the logarithmic axis at a power of ten below the smallest value, so that its bar is visible too.
    least = min((entry["median"]["latency_ms"]["p50"] for entry in entries if entry["median"]), default=1.0)
    axes.set_xlim(10 ** math.floor(math.log10(max(least, 1e-3) * 0.7)), axes.get_xlim()[1] * 3)
    _frame(axes, entries, "latency in milliseconds, logarithmic")


def _frame(axes: Axes, entries: Sequence[Entry], label: str) -> None:
    axes.set_yticks(range(len(entries)), [entry["peer"] for entry in entries])
    axes.invert_yaxis()
    axes.set_xlabel(label, fontsize=9)
    axes.tick_params(length=0)
    axes.tick_params(axis="x", labelsize=8, colors="0.4")
    axes.xaxis.grid(True, color="0.9")
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_visible(False)
