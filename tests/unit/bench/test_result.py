"""Medians, spreads and ratios of results; void runs are excluded but shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafkacore.bench.chart import draw
from kafkacore.bench.result import Case, Standing, round_figures, summarize
from kafkacore.bench.table import tables

CASE = Case("produce", "lz4", 6, 1_000_000, 100)
PACED = Case("produce", "none", 1, 1_000, 100, rate=500.0)


def used(seconds: float, cpu_s: float, **more: object) -> dict[str, object]:
    figures = {"records": 1_000_000, "seconds": seconds, "cpu_s": cpu_s}
    return figures | {"start_rss_mib": 10.0, "peak_rss_mib": 30.0} | more


def standing(name: str, *rounds: tuple[float, float], void: str | None = None) -> Standing:
    made = Standing(name, {"acks": 1})
    made.rounds = [round_figures(CASE, used(*each), None) for each in rounds]
    if void is not None:
        made.rounds.append(round_figures(CASE, {"void": void}, None))
    return made


def test_rates_follow_from_seconds_and_sizes():
    figures = round_figures(CASE, used(2.0, 0.5), 3.0)
    assert figures["records_per_s"] == 500_000
    assert figures["mb_per_s"] == 50
    assert figures["cpu_s_per_million"] == 0.5
    assert figures["broker_cpu_s_per_million"] == 3.0


def test_median_spread_and_advantage_over_each_peer():
    ours, peer = summarize(
        CASE, [standing("a", (1, 1), (2, 1), (4, 1)), standing("b", (8, 3), (8, 2), (4, 9))]
    )
    assert ours["median"]["records_per_s"] == 500_000
    assert ours["spread"]["records_per_s"] == [250_000, 1_000_000]
    assert peer["advantage"]["records_per_s"] == 4.0
    assert peer["advantage"]["cpu_s_per_million"] == 3.0
    assert ours["advantage"]["records_per_s"] == 1.0


def test_void_round_counts_for_nothing_and_voids_the_contestant():
    ours, peer = summarize(CASE, [standing("a", (1, 1)), standing("b", (2, 2), void="3 lost")])
    assert ours["void"] is None
    assert peer["void"] == "3 lost"
    assert peer["median"]["records_per_s"] == 500_000


def test_latencies_are_compared_too():
    entries = []
    for name, p99 in (("a", 2.0), ("b", 6.0)):
        each = Standing(name, {})
        latency = {"p50": 1.0, "p99": p99, "p99.9": 9.0, "max": 10.0}
        each.rounds = [round_figures(PACED, used(1, 1, latency_ms=latency), None)]
        entries.append(each)
    ours, peer = summarize(PACED, entries)
    assert ours["median"]["latency_ms"]["p99"] == 2.0
    assert peer["advantage"]["latency_p99"] == 3.0


@pytest.fixture
def result() -> dict[str, object]:
    entries = summarize(
        CASE, [standing("kafkacore", (1, 1)), standing("peer", (2, 2)), standing("x", void="1 lost")]
    )
    machine = {"cpu": "a processor", "cores": 2, "python": "CPython", "words": "a machine"}
    result = {"results": entries, "machine": machine, "broker": "embedded broker", "options": {"rounds": 1}}
    return json.loads(json.dumps(result))


def test_table_has_a_row_for_each_contestant_and_shows_what_is_void(result):
    ((title, header, rows),) = tables(result)
    assert "lz4" in title
    assert "6 partitions" in title
    assert [row[0] for row in rows] == ["kafkacore", "peer", "x"]
    assert all(len(row) == len(header) for row in rows)
    assert rows[1][-2:] == ["2.00x", "2.00x"]
    assert rows[2][1] == "VOID"


def test_chart_is_a_picture(result, tmp_path: Path):
    draw(result, tmp_path / "chart.png")
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")


def test_round_trip_has_the_figures_of_both_processes():
    case = Case("roundtrip", "none", 1, 1_000, 100, rate=500.0)
    latency = {"p50": 1.0, "p99": 2.0, "p99.9": 3.0, "max": 4.0}
    entries = []
    for name, factor in (("a", 1), ("b", 2)):
        one = {key: value / 2 * factor for key, value in latency.items()}
        more = {"latency_ms": latency, "acknowledged_ms": one, "producer_cpu_s": 0.5, "consumer_cpu_s": 0.25}
        each = Standing(name, {})
        each.rounds = [round_figures(case, used(2, 0.75, **more), None)]
        entries.append(each)
    ours, peer = summarize(case, entries)
    assert ours["median"]["acknowledged_ms"]["p99"] == 1.0
    assert peer["median"]["acknowledged_ms"]["p99"] == 2.0
    assert ours["median"]["latency_ms"] == latency
    assert ours["median"]["producer_cpu_s_per_million"] == 0.5
    assert ours["median"]["consumer_cpu_s_per_million"] == 0.25
    assert peer["advantage"]["acknowledged_p99"] == 2.0
