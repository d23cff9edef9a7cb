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

from kafkacore.bench.spark.rows import ROWS

HERE = Path(__file__).resolve().parent
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
BROKER_BEGIN, BROKER_END = "<!-- broker: begin -->", "<!-- broker: end -->"
SPARK_BEGIN, SPARK_END = "<!-- spark: begin -->", "<!-- spark: end -->"
#: What results of ``macro/spark.py`` and ``macro/broker.py`` are called.
SPARK_RESULT, BROKER_RESULT = "*-spark.json", "*-broker.json"

#: (mode, peer) → what of it has a goal: records/s and CPU, each as a ratio.
GOALS = {
    ("produce", "confluent"): (3.0, 3.0),
    ("consume", "confluent"): (3.0, 3.0),
    ("group", "confluent"): (3.0, 3.0),
    ("arrow-produce", "confluent"): (None, 8.0),
    ("arrow-consume", "confluent"): (None, 8.0),
}


def newest() -> Path:
    """The result that was measured last, of all but Spark's and the broker's."""
    folder = HERE / "results"
    paths = set(folder.glob("*.json")) - set(folder.glob(SPARK_RESULT)) - set(folder.glob(BROKER_RESULT))
    results = [(json.loads(path.read_text())["date"], path) for path in paths]
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


def render_spark(result: dict[str, Any]) -> str:
    """The table of Spark's rows, in Markdown, and each side's query."""
    spark = result["spark"]
    versions = ", ".join(f"{name} {version}" for name, version in spark["versions"].items())
    lines = [
        f"Measured on {result['date'][:10]} at commit `{result['commit']}` by "
        f"`{result['command']}`, against "
        f"{spark['broker']}: {result['machine']['words']}. Median of "
        f"{spark['options']['rounds']} interleaved "
        f"rounds on `local[{spark['options']['cores']}]`, after a first one that does not count; each side "
        "in a driver program of its own; every row counted. Processor time is that of the JVM and of all "
        f"Python processes under it. Spark's own source is a **mixed-version jar set**. {versions}.",
        "",
        "| what | records | side | records/s | CPU s/M | of it JVM | Python | ours needs less |",
        "|---|---|---|---|---|---|---|---|",
        *(_spark_row(entry) for entry in spark["results"] if not _is_apart(entry)),
        "",
        *_from_before(spark),
        *(line for entry in spark["results"] if _is_apart(entry) for line in (_apart(entry), "")),
        "The queries:",
        "",
        *(
            f"- {entry['mode'][6:]}, {entry['peer']}: `{entry['settings']['query']}`"
            for entry in spark["results"]
        ),
    ]
    return "\n".join([*lines, ""])


def _from_before(spark: dict[str, Any]) -> list[str]:
    """Which rows are of another run, if a run was put together."""
    if "before" not in spark:
        return []
    rows = ", ".join(spark["before"])
    return [
        f"Of a run of its own, on the same machine: {rows}.",
        "",
    ]


def _is_apart(entry: dict[str, Any]) -> bool:
    """One whose figure is no processor time per million records."""
    return entry["mode"] in ("spark-trigger", "spark-memory") and not entry["void"]


def _apart(entry: dict[str, Any]) -> str:
    median = entry["median"]
    if entry["mode"] == "spark-memory":
        gigabytes = entry["records"] * entry["size"] / 1e9
        return (
            f"Memory: while {gigabytes:.1f} GB were read, the largest Python worker had "
            f"{median['worker_peak_mib']:,.0f} MiB resident at most, its interpreter and libraries with it."
        )
    times = f", {entry['advantage']['ms_per_batch']:.2f}x ours" if entry["peer"] != "kafkacore" else ""
    return (
        f"Smallest trigger, 2 rows, {entry['peer']}: {median['ms_per_batch']:.0f} ms a batch{times}, "
        f"{median['cpu_ms_per_batch']:.0f} ms of processor."
    )


def _spark_row(entry: dict[str, Any]) -> str:
    name = entry["mode"].removeprefix("spark-")
    what = f"| {name}: {ROWS[name].what} | {entry['records'] / 1e6:.3g} M | {entry['peer']} "
    if entry["void"]:
        return what + f"| void: {entry['void']} | | | | |"
    median = entry["median"]
    return what + (
        f"| {median['records_per_s']:,.0f} | {median['cpu_s_per_million']:.2f} "
        f"| {median['jvm_cpu_s_per_million']:.2f} | {median['python_cpu_s_per_million']:.2f} "
        f"| {_times(entry['advantage']['cpu_s_per_million'], ROWS[name].goals.get(entry['peer']))} |"
    )


def render_broker(result: dict[str, Any]) -> str:
    """The embedded broker beside Apache Kafka, in Markdown."""
    broker = result["broker"]
    lines = [
        f"Measured on {result['date'][:10]} at commit `{result['commit']}` by `{result['command']}`: "
        f"{result['machine']['words']}. Median of {broker['rounds']} interleaved rounds; CPU is the broker's "
        "process. More than 1 is in our favour.",
        "",
        "| what | record, batch, partitions | ours records/s | Kafka's | ratio | ours CPU s/M | Kafka's "
        "| ratio |",
        "|---|---|---|---|---|---|---|---|",
        *(broker_row(row) for row in broker["rows"] if row["what"] != "latency"),
        "",
        "Latency of a record at half of Apache Kafka's rate, linger 0, after 4 s of warm-up, in ms:",
        "",
        "| record, partitions | records/s | ours p50 | Kafka's | ours p99 | Kafka's | ratio of p99 |",
        "|---|---|---|---|---|---|---|",
        *(broker_row(row) for row in broker["rows"] if row["what"] == "latency"),
        "",
        "| what | figure |",
        "|---|---|",
        *(f"| {what} | {figure:,.2f} |" for what, figure in broker["resources"].items()),
    ]
    return "\n".join([*lines, ""])


def broker_row(row: dict[str, Any]) -> str:
    """One row of one of the two tables."""
    ours, theirs = row["median"].values()
    plural = "" if row["partitions"] == 1 else "s"
    if row["what"] == "latency":
        return (
            f"| {row['size']} B, {row['partitions']} partition{plural} | {row['rate']:,.0f} "
            f"| {ours['p50_ms']:,.0f} | {theirs['p50_ms']:,.0f} | {ours['p99_ms']:,.0f} "
            f"| {theirs['p99_ms']:,.0f} | {_times(theirs['p99_ms'] / max(ours['p99_ms'], 0.5), 1.0)} |"
        )
    rate, cpu = "records_per_s", "cpu_s_per_million"
    return (
        f"| {row['what']} | {row['size']} B, {row['batch'] // 1024} KiB, "
        f"{row['partitions']} partition{plural} "
        f"| {ours[rate]:,.0f} | {theirs[rate]:,.0f} | {_times(ours[rate] / theirs[rate], 1.0)} "
        f"| {ours[cpu]:.3f} | {theirs[cpu]:.3f} | {_times(theirs[cpu] / max(ours[cpu], 1e-9), None)} |"
    )


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
    _replace(readme, BEGIN, END, render(result))


def write_spark(readme: Path, result: dict[str, Any]) -> None:
    """The same with Spark's table."""
    _replace(readme, SPARK_BEGIN, SPARK_END, render_spark(result))


def write_broker(readme: Path, result: dict[str, Any]) -> None:
    """The same with the broker's tables."""
    _replace(readme, BROKER_BEGIN, BROKER_END, render_broker(result))


def _replace(readme: Path, first: str, last: str, tables: str) -> None:
    before, begin, rest = readme.read_text().partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise SystemExit(f"{readme} has no place for the tables: {first} ... {last}")
    readme.write_text(f"{before}{first}\n\n{tables}\n{last}{after}")


def main() -> int:
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else newest()
    result = json.loads(source.read_text())
    kind = write_spark if "spark" in result else write_broker if "broker" in result else write
    kind(HERE / "README.md", result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
