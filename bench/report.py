"""Write the tables of docs/measured from the result files in bench/results.

    python bench/report.py                       # all tables, each from its newest result
    python bench/report.py --check               # write nothing; fail if a table is out of date
    python bench/report.py bench/results/2026-11-21-0123abcd.json    # the tables of this result

A table is stored between two marks of a page, and what is between them is replaced. A ratio compares a peer
with kafkacore in the same run: more than 1 is in favour of kafkacore.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kafkacore.bench.spark.rows import ROWS

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
PAGES = HERE.parent / "docs" / "measured"
#: Results of the reliability tests, maintained by hand; see the comment at the top of the file.
RELIABILITY = RESULTS / "reliability.toml"
BEGIN, END = "<!-- {}: made by bench/report.py -->", "<!-- end of {} -->"

#: Values that have a goal, by (mode, peer): records/s and CPU, each as a ratio.
GOALS = {
    ("produce", "confluent"): (3.0, 3.0),
    ("consume", "confluent"): (3.0, 3.0),
    ("group", "confluent"): (3.0, 3.0),
    ("arrow-produce", "confluent"): (None, 8.0),
    ("arrow-consume", "confluent"): (None, 8.0),
}
#: Latencies in the table of low rates: figure and percentile.
LOW_RATE_LATENCIES = (
    ("acknowledged_ms", "p50"),
    ("acknowledged_ms", "p99"),
    ("latency_ms", "p50"),
    ("latency_ms", "p99"),
)


def measured(result: Mapping[str, Any]) -> str:
    """Return when, where and by which command a result was measured."""
    commit = f", commit `{result['commit']}`" if result["commit"] != "unknown" else ""
    machine = result["machine"]["words"]
    return f"Measured on {result['date'][:10]}{commit}, by `{result['command']}`. Machine: {machine}."


def render_clients(result: dict[str, Any]) -> str:
    """Return the table of whole clients against Apache Kafka, in Markdown."""
    return "\n".join([measured(result), "", *_macro(result["macro"]), ""])


def render_parts(result: dict[str, Any]) -> str:
    """Return the tables that compare parts of kafkacore with the same parts of peers, in Markdown."""
    return "\n".join([measured(result), "", *_micro(result["micro"]), ""])


def _macro(macro: dict[str, Any]) -> Iterator[str]:
    versions = _versions(macro)
    rounds = macro["options"]["rounds"]
    # The mode `broker` compares the brokers. The broker that was started is listed there by its address.
    given = f"broker at {macro['options']['bootstrap']}"
    how = "One round" if rounds == 1 else f"Median of {rounds} interleaved rounds"
    yield f"Broker: {macro['broker']}. {how}; every record was counted. Versions: {versions}."
    yield ""
    yield "| workload | client | records/s | MB/s | CPU s/M | peak MiB | faster | less CPU |"
    yield "|---|---|---|---|---|---|---|---|"
    for entry in macro["results"]:
        if entry["rate"] is None:
            yield _rate_row(entry).replace(given, macro["broker"])
    paced = [entry for entry in macro["results"] if entry["rate"] is not None]
    if paced:
        yield ""
        yield "Latency in milliseconds at a fixed rate and linger 0, from the time at which a record was due:"
        yield ""
        yield "| workload | client | p50 | p99 | p99.9 | max |"
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
        # The codec libraries are compared with each other; docs/dependencies.md explains the choice.
        if each["name"].startswith("codecs.py"):
            continue
        groups.setdefault(each["group"] or each["name"], []).append(each)
    yield "| work | kafkacore | peer | | kafkacore is faster |"
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
        yield "| work without a peer | best round |"
        yield "|---|---|"
        for each in alone:
            yield f"| `{each['name'].replace('|', '/')}` | {_rate(each)} |"


def render_spark(result: dict[str, Any]) -> str:
    """Return the table of Spark's rows, and the query of each side, in Markdown."""
    spark = result["spark"]
    versions = _versions(spark)
    lines = [
        measured(result),
        "",
        f"Broker: {spark['broker']}. Median of {spark['options']['rounds']} interleaved rounds on "
        f"`local[{spark['options']['cores']}]`, after one round that does not count. Each side has its own "
        "driver program. Every row was counted. Processor time is that of the JVM and all Python processes "
        f"below it. Spark's own source is a **mixed-version jar set**. Versions: {versions}.",
        "",
        "| workload | records | side | records/s | CPU s/M | of it JVM | Python | less CPU |",
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
    """Name the rows that come from an earlier run."""
    if "before" not in spark:
        return []
    rows = ", ".join(spark["before"])
    return [
        f"Measured in a separate run on the same machine: {rows}.",
        "",
    ]


def _is_apart(entry: dict[str, Any]) -> bool:
    """Return whether the row has another unit than CPU time per million records."""
    return entry["mode"] in ("spark-trigger", "spark-memory") and not entry["void"]


def _apart(entry: dict[str, Any]) -> str:
    median = entry["median"]
    if entry["mode"] == "spark-memory":
        gigabytes = entry["records"] * entry["size"] / 1e9
        return (
            f"Memory: while {gigabytes:.1f} GB were read, the largest Python worker had at most "
            f"{median['worker_peak_mib']:,.0f} MiB resident, including the interpreter and libraries."
        )
    return (
        f"Smallest trigger, 2 rows, {entry['peer']}: {median['ms_per_batch']:.0f} ms per batch, "
        f"{median['cpu_ms_per_batch']:.0f} ms of processor time."
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
    """Return the tables that compare the embedded broker with Apache Kafka, in Markdown."""
    broker = result["broker"]
    lines = [
        measured(result),
        "",
        f"Median of {broker['rounds']} interleaved rounds. CPU is that of the broker's process.",
        "",
        "| workload | record, batch, partitions | records/s | Kafka's | ratio | CPU s/M | Kafka's | ratio |",
        "|---|---|---|---|---|---|---|---|",
        *(broker_row(row) for row in broker["rows"] if row["what"] != "latency"),
        "",
        "Latency of a record in ms, at half of Apache Kafka's rate, linger 0, after 4 s of warm-up:",
        "",
        "| record, partitions | records/s | p50 | Kafka's | p99 | Kafka's | ratio of p99 |",
        "|---|---|---|---|---|---|---|",
        *(broker_row(row) for row in broker["rows"] if row["what"] == "latency"),
        "",
        "| resource | figure |",
        "|---|---|",
        *(f"| {_resource(what)} | {figure:,.2f} |" for what, figure in broker["resources"].items()),
    ]
    return "\n".join([*lines, ""])


def render_transactions(result: dict[str, Any]) -> str:
    """Return the table that compares the embedded broker with Apache Kafka in transactions, in Markdown."""
    transactions = result["transactions"]
    lines = [
        measured(result),
        "",
        f"Median of {transactions['rounds']} interleaved rounds of {transactions['per_round']} transactions. "
        "CPU is that of the broker's process.",
        "",
        "| record | broker | records/s | to Kafka's | ms per transaction | CPU s/M | to Kafka's |",
        "|---|---|---|---|---|---|---|",
    ]
    rate, cpu = "records_per_s", "cpu_s_per_million"
    for row in transactions["rows"]:
        *_, theirs = row["median"].values()
        lines += [
            f"| {row['size']} B | {name} "
            f"| {figures[rate]:,.0f} | {_times(figures[rate] / theirs[rate], None)} "
            f"| {figures['ms_per_transaction']:.1f} | {figures[cpu]:.3f} "
            f"| {_times(theirs[cpu] / max(figures[cpu], 1e-9), None)} |"
            for name, figures in row["median"].items()
        ]
    return "\n".join([*lines, ""])


def render_consumer_groups(result: dict[str, Any]) -> str:
    """Return the tables of consumer groups of KIP-848 on both brokers, in Markdown."""
    groups = result["consumer_groups"]
    lines = [
        measured(result),
        "",
        f"Median of {groups['rounds']} interleaved rounds. CPU is that of the broker's process, in per cent "
        "of one core, while all members only send heartbeats.",
        "",
        "| members | broker | s until all have joined | heartbeats/s | CPU % | µs per heartbeat "
        "| p50, ms | p99, ms |",
        "|---|---|---|---|---|---|---|---|",
        *(
            f"| {row['what']} | {name} | {figures['join_s']:.1f} | {figures['heartbeats_per_s']:,.0f} "
            f"| {figures['cpu_percent']:.1f} | {figures['cpu_us_per_heartbeat']:.1f} "
            f"| {figures['p50_ms']:.2f} | {figures['p99_ms']:.2f} |"
            for row in groups["heartbeats"]
            for name, figures in row["median"].items()
        ),
        "",
        f"{groups['one_more']['what'].capitalize()}. The longest waits are those of records in partitions "
        "that stay with their consumer. A record counts as paused if it waits for more than "
        f"{groups['polls']} polls of {groups['poll_ms']} ms.",
        "",
        "| broker | s until stable | longest wait before, ms | longest wait meanwhile, ms | paused records |",
        "|---|---|---|---|---|",
        *(
            f"| {name} | {figures['stable_s']:.2f} | {figures['longest_wait_before_ms']:.0f} "
            f"| {figures['longest_wait_ms']:.0f} | {figures['paused_records']:.0f} |"
            for name, figures in groups["one_more"]["median"].items()
        ),
    ]
    return "\n".join([*lines, ""])


def render_startup(result: dict[str, Any]) -> str:
    """Return the table of the time that clients take to start, in Markdown."""
    startup = result["startup"]
    versions = _versions(startup)
    lines = [
        measured(result),
        "",
        f"Median of {startup['rounds']} interleaved rounds, each in a new process, in ms from the start of "
        f"the process. Versions: {versions}.",
        "",
        "| client | producer created, CPU | wall | first record acknowledged, CPU | wall |",
        "|---|---|---|---|---|",
        *(
            f"| {name} | {figures['created_cpu_ms']:.0f} | {figures['created_ms']:.0f} "
            f"| {figures['acknowledged_cpu_ms']:.0f} | {figures['acknowledged_ms']:.0f} |"
            for name, figures in startup["median"].items()
        ),
    ]
    return "\n".join([*lines, ""])


def render_low_rates(result: dict[str, Any]) -> str:
    """Return the table of latency and CPU time at low rates, in Markdown."""
    low = result["low_rates"]
    versions = _versions(low)
    lines = [
        measured(result),
        "",
        f"Median of {low['rounds']} interleaved rounds of {low['seconds']:g} s each, in ms and in CPU "
        f"milliseconds per 1,000 records. Versions: {versions}.",
        "",
        "| records/s | broker | client | acknowledged, p50 | p99 | received, p50 | p99 "
        "| producer's CPU | consumer's CPU |",
        "|---|---|---|---|---|---|---|---|---|",
        *map(_low_rate_row, low["rows"]),
    ]
    return "\n".join([*lines, ""])


def _low_rate_row(row: dict[str, Any]) -> str:
    what = f"| {row['rate']:,.0f} | {row['broker']}, {row['transport']} | {row['peer']} "
    if row["void"]:
        return what + f"| void: {row['void']} | | | | | |"
    median = row["median"]
    cells = [f"{median[kind][name]:.2f}" if kind in median else "" for kind, name in LOW_RATE_LATENCIES]
    # Seconds per million records are milliseconds per thousand.
    cells += [
        f"{median[f'{end}_cpu_s_per_million']:.1f}" if f"{end}_cpu_s_per_million" in median else ""
        for end in ("producer", "consumer")
    ]
    return what + "".join(f"| {cell} " for cell in cells) + "|"


def _versions(measured_part: dict[str, Any]) -> str:
    """Return the versions of what was measured: "kafkacore 0.1.0, aiokafka 0.14.0"."""
    return ", ".join(f"{name} {version}" for name, version in measured_part["versions"].items())


def render_asyncio(result: dict[str, Any]) -> str:
    """Return the table of the asyncio clients, in Markdown."""
    clients = result["asyncio_clients"]
    versions = _versions(clients)
    lines = [
        measured(result),
        "",
        f"Median of {clients['rounds']} interleaved rounds. *Ratio* is the CPU time per record relative to "
        f"kafkacore's. Versions: {versions}.",
        "",
        "| work | broker | client | CPU s/M | ratio | records/s | acknowledged, p50 ms | p99 ms "
        "| callbacks over 5 ms |",
        "|---|---|---|---|---|---|---|---|---|",
        *(
            _asyncio_row(row, client, figures)
            for row in clients["rows"]
            for client, figures in row["median"].items()
        ),
    ]
    return "\n".join([*lines, ""])


def _asyncio_row(row: dict[str, Any], client: str, figures: dict[str, Any]) -> str:
    cpu_s = figures["cpu_s_per_million"]
    ratio = cpu_s / row["median"]["kafkacore"]["cpu_s_per_million"]
    latencies = [f"{figures[name]:.2f}" if name in figures else "" for name in ("p50_ms", "p99_ms")]
    slow = f"{figures['slow_callbacks']:.0f}" if "slow_callbacks" in figures else ""
    if slow and not figures["has_priority"]:
        slow += " (with interruptions by other processes)"
    return (
        f"| {row['work']} | {row['broker']} | {client} | {cpu_s:.2f} | {ratio:.1f} "
        f"| {figures['records_per_s']:,.0f} | {latencies[0]} | {latencies[1]} | {slow} |"
    )


def render_cli(result: dict[str, Any]) -> str:
    """Return the table of the commands ``produce`` and ``consume``, in Markdown."""
    cli = result["cli"]
    versions = _versions(cli)
    lines = [
        measured(result),
        "",
        f"{cli['lines']:,} lines of 100 bytes, median of {cli['rounds']} interleaved rounds, each in a new "
        f"process; seconds of CPU and of wall time of the whole process. Versions: {versions}.",
        "",
        "| command | kafkacore CPU s | kcat CPU s | kafkacore wall s | kcat wall s | less CPU |",
        "|---|---|---|---|---|---|",
        *map(_cli_row, cli["rows"]),
    ]
    return "\n".join([*lines, ""])


def _cli_row(row: dict[str, Any]) -> str:
    ours, kcats = row["median"]["kafkacore"], row["median"].get("kcat")
    if kcats is None:
        return f"| {row['what']} | {ours['cpu_s']:.2f} | | {ours['wall_s']:.2f} | | |"
    return (
        f"| {row['what']} | {ours['cpu_s']:.2f} | {kcats['cpu_s']:.2f} | {ours['wall_s']:.2f} "
        f"| {kcats['wall_s']:.2f} | {_times(kcats['cpu_s'] / ours['cpu_s'], None)} |"
    )


def _resource(what: str) -> str:
    """Return the name of a resource with its unit at the end."""
    unit, _, rest = what.replace("ready_s,", "s until ready,").partition(" ")
    unit = {"resident_mib": "MiB", "s": "s"}.get(unit, unit)
    rest = rest.replace("more with", "added by").replace("of a new one", "of a newly started broker")
    return f"resident memory {rest}, MiB" if unit == "MiB" else f"{rest.removeprefix('to ')}, {unit}"


def render_tls(result: dict[str, Any]) -> str:
    """Return the table of whole clients over TLS, in Markdown."""
    tls = result["tls"]
    lines = [
        measured(result),
        "",
        f"Broker: {tls['broker']}. {tls['note']}",
        "",
        "| workload | kafkacore records/s | confluent records/s | faster | kafkacore CPU s/M "
        "| confluent CPU s/M | less CPU |",
        "|---|---|---|---|---|---|---|",
        *(_tls_row(row) for row in tls["rows"]),
        "",
        f"{tls['records']:,} records at {tls['rate']:,} per second, in ms:",
        "",
        "| workload | client | p50 | p99 | p99.9 | max | CPU s/M |",
        "|---|---|---|---|---|---|---|",
        *(
            f"| {row['mode']} | {row['peer']} | "
            + " | ".join(f"{row['latency_ms'][name]:.2f}" for name in ("p50", "p99", "p99.9", "max"))
            + f" | {row['cpu_s_per_million']:.1f} |"
            for row in tls["latency"]
        ),
    ]
    return "\n".join([*lines, ""])


def _tls_row(row: dict[str, Any]) -> str:
    ours, theirs = row["ours"], row["confluent"]
    rate, cpu = "records_per_s", "cpu_s_per_million"
    return (
        f"| {row['what']} | {ours[rate]:,.0f} | {theirs[rate]:,.0f} | {ours[rate] / theirs[rate]:.2f}x "
        f"| {ours[cpu]:.3f} | {theirs[cpu]:.3f} | {theirs[cpu] / ours[cpu]:.2f}x |"
    )


def render_kafka_suite(result: dict[str, Any]) -> str:
    """Return the tables of Apache Kafka's own tests on the embedded cluster, in Markdown."""
    classes: dict[str, dict[str, Any]] = result["kafka_suite"]["classes"]
    ran = {name: entry for name, entry in classes.items() if not _is_left_out(entry)}
    controlled = [each for entry in classes.values() for each in entry["control"].values()]
    head = "| classes | passed | failed | java objects | left out |\n|---|---|---|---|---|---|"
    lines = [
        measured(result),
        "",
        f"Tests of Apache Kafka {result['kafka_suite']['kafka']}. A control ran {len(controlled):,} of them "
        f"with Kafka's own brokers; {sum(each[0] == 'passed' for each in controlled):,} passed.",
        "",
        f"| jar {head}",
        *(
            _suite_row(artifact, [entry for entry in ran.values() if entry["artifact"] == artifact])
            for artifact in sorted({entry["artifact"] for entry in ran.values()})
        ),
        _suite_row("all", list(ran.values())),
        "",
        "By class:",
        "",
        "| class | passed | failed | java objects | left out |",
        "|---|---|---|---|---|",
        *(f"| {name.rpartition('.')[2]} | {_suite_counts([entry])} |" for name, entry in ran.items()),
        "",
        *_suite_failures(ran),
        "Left out, with the number of tests, or of classes that were not run:",
        "",
        "| reason | tests | classes |",
        "|---|---|---|",
        *_suite_reasons(classes),
    ]
    return "\n".join([*lines, ""])


def _is_left_out(entry: dict[str, Any]) -> bool:
    """Return whether a whole class was left out, or only the control ran."""
    return not entry["tests"] or entry["tests"].get("(class)", [""])[0] == "left out"


def _suite_row(what: str, entries: list[dict[str, Any]]) -> str:
    return f"| {what} | {len(entries)} | {_suite_counts(entries)} |"


def _suite_counts(entries: list[dict[str, Any]]) -> str:
    found = Counter(each[0] for entry in entries for each in entry["tests"].values())
    return " | ".join(f"{found[name]:,}" for name in ("passed", "failed", "java objects", "left out"))


def _suite_failures(classes: dict[str, dict[str, Any]]) -> Iterator[str]:
    failed = [
        (f"{name.rpartition('.')[2]}.{test}", each[1])
        for name, entry in classes.items()
        for test, each in entry["tests"].items()
        if each[0] == "failed"
    ]
    if failed:
        yield "Failed:"
        yield ""
        yield "| test | error |"
        yield "|---|---|"
        for test, error in failed:
            shown = error.replace("|", "/").replace("`", "'")
            yield f"| {test} | `{shown}` |"
        yield ""


def _suite_reasons(classes: dict[str, dict[str, Any]]) -> Iterator[str]:
    tests: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    for entry in classes.values():
        for name, each in entry["tests"].items():
            if each[0] == "left out":
                (whole if name == "(class)" else tests)[each[1]] += 1
    for reason in sorted({*tests, *whole}):
        yield f"| {reason} | {tests[reason] or ''} | {whole[reason] or ''} |"


#: Marks commands that a test of the documentation must not run.
NOT_RUN = "<!-- not run: a full run takes hours, and needs the repository -->"


def render_reliability(rows: list[dict[str, Any]]) -> str:
    """Return the table of reliability tests, their results and the commands that repeat them."""
    lines = ["| scenario | in `make test` | full run | result |", "|---|---|---|---|"]
    lines += [f"| {row['what']} | {row['in_test']} | {row['full']} | {_outcome(row)} |" for row in rows]
    lines += [
        "",
        "To repeat a full run:",
        "",
        NOT_RUN,
        "```shell",
        *dict.fromkeys(_repeat(row) for row in rows),
        "```",
    ]
    return "\n".join([*lines, ""])


def _outcome(row: dict[str, Any]) -> str:
    commit = f" Commit `{row['commit']}`." if "commit" in row else ""
    seeds = ", ".join(str(seed) for seed in row.get("seeds", []))
    return f"{row['result']}.{commit}" + (f" Seed {seeds}." if seeds else "")


def _repeat(row: dict[str, Any]) -> str:
    return f"KAFKACORE_DOSE=release .venv/bin/python -m pytest --timeout=1800 {row['test']}"


def render_defects(rows: list[dict[str, Any]]) -> str:
    """Return the table of defects of other implementations, each with the test for it here."""
    lines = ["| defect elsewhere | test here |", "|---|---|"]
    return "\n".join([*lines, *(f"| {row['what']} | `{row['test']}` |" for row in rows), ""])


def broker_row(row: dict[str, Any]) -> str:
    """Return one row of one of the two tables."""
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
    """Return the peer that a row of a micro-benchmark belongs to, or ``None`` for kafkacore."""
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


#: Tables of a result, by its key: name of the table → its page, and the function that renders it.
Section = tuple[str, Callable[[dict[str, Any]], str]]
SECTIONS: dict[str, dict[str, Section]] = {
    "macro": {"clients": ("clients.md", render_clients)},
    "micro": {"parts": ("parts.md", render_parts)},
    "spark": {"spark": ("spark.md", render_spark)},
    "broker": {"broker": ("broker.md", render_broker)},
    "transactions": {"transactions": ("broker.md", render_transactions)},
    "consumer_groups": {"consumer-groups": ("broker.md", render_consumer_groups)},
    "tls": {"tls": ("clients.md", render_tls)},
    "startup": {"startup": ("clients.md", render_startup)},
    "low_rates": {"low-rates": ("low-rates.md", render_low_rates)},
    "asyncio_clients": {"asyncio": ("asyncio.md", render_asyncio)},
    "cli": {"cli": ("clients.md", render_cli)},
    "kafka_suite": {"kafka-suite": ("kafka-suite.md", render_kafka_suite)},
}
#: Tables of the reliability results: name → page.
RELIABILITY_SECTIONS = {
    "producer": "reliability.md", "group": "reliability.md", "broker": "reliability.md",
    "spark": "reliability.md", "hostile": "security.md", "defect": "security.md",
}  # fmt: skip


def newest(key: str) -> dict[str, Any]:
    """Return the newest result that contains ``key``."""
    results: list[dict[str, Any]] = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]
    found = [result for result in results if key in result]
    if not found:
        raise SystemExit(f"no result in {RESULTS} contains {key!r}; run: make bench")
    return max(found, key=lambda result: str(result["date"]))


def tables_of(result: dict[str, Any]) -> dict[tuple[str, str], str]:
    """Return the tables of a result, by page and name of the table."""
    return {
        (page, name): render(result)
        for key, sections in SECTIONS.items()
        if key in result
        for name, (page, render) in sections.items()
    }


def reliability_tables() -> dict[tuple[str, str], str]:
    """Return the tables of the reliability results, by page and name of the table."""
    results = tomllib.loads(RELIABILITY.read_text())
    return {
        (page, name): (render_defects if name == "defect" else render_reliability)(results[name])
        for name, page in RELIABILITY_SECTIONS.items()
    }


def all_tables() -> dict[tuple[str, str], str]:
    """Return every table of docs/measured."""
    tables = reliability_tables()
    for key, sections in SECTIONS.items():
        whole = tables_of(newest(key))
        tables |= {place: table for place, table in whole.items() if place[1] in sections}
    return tables


def replaced(page: Path, name: str, table: str) -> str:
    """Return the text of a page with one table replaced."""
    begin, end = BEGIN.format(name), END.format(name)
    before, has_begin, rest = page.read_text().partition(begin)
    _, has_end, after = rest.partition(end)
    if not has_begin or not has_end:
        raise SystemExit(f"{page} has no markers for the table {name!r}: {begin} ... {end}")
    return f"{before}{begin}\n\n{table}\n{end}{after}"


def write(pages: Path, result: dict[str, Any]) -> None:
    """Replace the tables of one result."""
    for (page, name), table in tables_of(result).items():
        (pages / page).write_text(replaced(pages / page, name, table))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "result", nargs="?", type=Path, help="render only this result (default: the newest of each kind)"
    )
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a table is out of date")
    arguments = parser.parse_args()
    tables = tables_of(json.loads(arguments.result.read_text())) if arguments.result else all_tables()
    stale = []
    for (page, name), table in tables.items():
        path = PAGES / page
        text = replaced(path, name, table)
        if text != path.read_text():
            stale.append(f"docs/measured/{page}: {name}")
            if not arguments.check:
                path.write_text(text)
    if stale and arguments.check:
        sys.exit(f"out of date, run python bench/report.py: {', '.join(stale)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
