"""The tables of ``bench/README.md`` out of a result.

    python bench/report.py                       # of the newest in bench/results
    python bench/report.py bench/results/2026-11-21-0123abcd.json

What lies between the two marks in the README is replaced. A ratio is the peer's figure against ours in the
same run: more than 1 is in our favour.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"

#: (mode, peer) → what of it has a goal: records/s and CPU, each as a ratio.
GOALS = {
    ("produce", "confluent"): (3.0, 3.0),
    ("consume", "confluent"): (3.0, 3.0),
    ("group", "confluent"): (3.0, 3.0),
    ("arrow-produce", "confluent"): (None, 8.0),
    ("arrow-consume", "confluent"): (None, 8.0),
}


def newest() -> Path:
    """The result that was measured last."""
    results = [(json.loads(path.read_text())["date"], path) for path in (HERE / "results").glob("*.json")]
    if not results:
        raise SystemExit("no result yet: make bench")
    return max(results)[1]


def render(result: dict[str, Any]) -> str:
    """All tables, in Markdown."""
    lines = [
        f"Measured on {result['date'][:10]} at commit `{result['commit']}` by `{result['command']}`: "
        f"{result['machine']['words']}.",
        "",
    ]
    if "macro" in result:
        lines += [*_macro(result["macro"]), ""]
    if "micro" in result:
        lines += [*_micro(result["micro"]), ""]
    return "\n".join(lines)


def _macro(macro: dict[str, Any]) -> Iterator[str]:
    versions = ", ".join(f"{name} {version}" for name, version in macro["versions"].items())
    rounds = macro["options"]["rounds"]
    # In the mode `broker` the brokers are the contestants; what was started is known by its address there.
    given = f"broker at {macro['options']['bootstrap']}"
    yield f"### Whole processes, against {macro['broker']}"
    yield ""
    how = "One round" if rounds == 1 else f"Median of {rounds} interleaved rounds"
    yield f"{how}; every record counted. {versions}."
    yield ""
    yield "| what | client | records/s | MB/s | CPU s/M | peak MiB | ours is faster | ours needs less CPU |"
    yield "|---|---|---|---|---|---|---|---|"
    for entry in macro["results"]:
        if entry["rate"] is None:
            yield _rate_row(entry).replace(given, macro["broker"])
    paced = [entry for entry in macro["results"] if entry["rate"] is not None]
    if paced:
        yield ""
        yield "Latency in milliseconds at a fixed rate, from when a record should have left (linger 0):"
        yield ""
        yield "| what | client | p50 | p99 | p99.9 | max |"
        yield "|---|---|---|---|---|---|"
        yield from map(_latency_row, paced)
    for peer, why in macro["missing"].items():
        yield ""
        yield f"Without {peer}: {why}."


def _what(entry: dict[str, Any]) -> str:
    plural = "" if entry["partitions"] == 1 else "s"
    paced = f", {entry['rate']:,.0f}/s" if entry["rate"] else ""
    count = f"{entry['records'] / 1e6:g} M" if entry["records"] >= 1e5 else f"{entry['records']:,}"
    return f"{entry['mode']}, {entry['codec']}, {entry['partitions']} partition{plural}, {count}{paced}"


def _rate_row(entry: dict[str, Any]) -> str:
    if entry["void"]:
        return f"| {_what(entry)} | {entry['peer']} | void: {entry['void']} | | | | | |"
    median, advantage = entry["median"], entry["advantage"]
    speed_goal, cpu_goal = GOALS.get((entry["mode"], entry["peer"]), (None, None))
    return (
        f"| {_what(entry)} | {entry['peer']} | {median['records_per_s']:,.0f} | {median['mb_per_s']:,.1f} "
        f"| {median['cpu_s_per_million']:.3f} | {median['peak_rss_mib']:,.0f} "
        f"| {_times(advantage['records_per_s'], speed_goal)} "
        f"| {_times(advantage['cpu_s_per_million'], cpu_goal)} |"
    )


def _latency_row(entry: dict[str, Any]) -> str:
    if entry["void"]:
        return f"| {_what(entry)} | {entry['peer']} | void: {entry['void']} | | | |"
    latency = entry["median"]["latency_ms"]
    figures = " | ".join(f"{latency[name]:,.2f}" for name in ("p50", "p99", "p99.9", "max"))
    return f"| {_what(entry)} | {entry['peer']} | {figures} |"


def _times(ratio: float, goal: float | None) -> str:
    return f"{ratio:.2f}x" + (f" (goal {goal:g}x)" if goal else "")


def _micro(micro: list[dict[str, Any]]) -> Iterator[str]:
    groups: dict[str, list[dict[str, Any]]] = {}
    alone = []
    for each in micro:
        # The codecs' libraries among each other: what they decide is in docs/DESIGN.md, "Dependencies".
        if each["name"].startswith("codecs.py"):
            continue
        groups.setdefault(each["group"] or each["name"], []).append(each)
    yield "### The parts, against their peers"
    yield ""
    yield "Best round of each, in one process; the same work on both sides."
    yield ""
    yield "| what | ours | peer | | ours is faster |"
    yield "|---|---|---|---|---|"
    for group, members in groups.items():
        ours = [each for each in members if peer_of(each) is None]
        peers = [each for each in members if peer_of(each) is not None]
        if not ours or not peers:
            alone += members
            continue
        best = min(ours, key=lambda each: float(each["best_s"]))
        for each in peers:
            ratio = _times(each["best_s"] / best["best_s"], best["extra_info"].get("goal"))
            yield f"| {group} | {_rate(best)} | {peer_of(each)} | {_rate(each)} | {ratio} |"
    if alone:
        yield ""
        yield "| without a peer | best round |"
        yield "|---|---|"
        for each in alone:
            yield f"| `{each['name'].replace('|', '/')}` | {_rate(each)} |"


def peer_of(each: dict[str, Any]) -> str | None:
    """Whose row of a micro-benchmark this is; ``None`` for ours."""
    name = each["extra_info"].get("peer") or each["params"].get("contender")
    return None if name in (None, "kafkacore") else str(name)


def _rate(each: dict[str, Any]) -> str:
    for unit, value in each["extra_info"].items():
        if "/s" in unit and isinstance(value, int | float):
            return _short(float(value), unit)
    return f"{each['best_s'] * 1e6:,.1f} µs"


def _short(value: float, unit: str) -> str:
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:,.2f} {prefix} {unit}"
    return f"{value:,.0f} {unit}"


def write(readme: Path, result: dict[str, Any]) -> None:
    """Replace what lies between the marks."""
    text = readme.read_text()
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{readme} has no place for the tables: {BEGIN} ... {END}")
    readme.write_text(f"{before}{BEGIN}\n\n{render(result)}\n{END}{after}")


def main() -> int:
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else newest()
    write(HERE / "README.md", json.loads(source.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
