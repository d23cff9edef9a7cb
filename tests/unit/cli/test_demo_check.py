"""The demo's self-check detects each kind of difference, without a broker or Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pandas as pd
import pytest

from kafkacore.cli import demo, flights

RECORDS = 500
NO_SPARK = cast("Any", None)


def right_aggregate() -> pd.DataFrame:
    """Return flights, mean delay and share of cancelled flights by carrier and month, computed in Python."""
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for flight in [json.loads(value) for _, value in flights.records(RECORDS)]:
        groups.setdefault((flight["carrier"], flight["month"]), []).append(flight)
    rows = []
    for (carrier, month), members in groups.items():
        delays = [flight["dep_delay"] for flight in members if flight["dep_delay"] is not None]
        rows.append(
            {
                "carrier": carrier,
                "month": month,
                "flights": len(members),
                "mean_dep_delay": sum(delays) / len(delays) if delays else None,
                "cancelled_share": sum(flight["dep_time"] is None for flight in members) / len(members),
            }
        )
    return pd.DataFrame(rows)


def differences(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    aggregate: pd.DataFrame,
    *,
    rows: int = RECORDS,
    acknowledged: int = RECORDS,
) -> list[str]:
    """Return the differences that the check reports for a sink with ``rows`` rows and this aggregate."""
    found = demo.Folder(folder)
    found.aggregate.mkdir(parents=True)
    aggregate.to_parquet(found.aggregate / "part-0.parquet")
    monkeypatch.setattr(demo, "count_rows", lambda spark, sink: rows)
    return demo.check(NO_SPARK, found, RECORDS, acknowledged)


def test_right_counts_and_aggregate_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert differences(tmp_path, monkeypatch, right_aggregate()) == []


@pytest.mark.parametrize("wrong", [{"rows": RECORDS - 1}, {"acknowledged": RECORDS + 1}])
def test_one_record_more_or_less_is_a_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, int]
) -> None:
    (said,) = differences(tmp_path, monkeypatch, right_aggregate(), **wrong)
    assert f"{RECORDS:,} records in the data set" in said


@pytest.mark.parametrize("column", ["flights", "mean_dep_delay", "cancelled_share"])
def test_one_number_of_the_aggregate_is_a_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: str
) -> None:
    aggregate = right_aggregate()
    aggregate[column] = aggregate[column].where(aggregate.index != 3, aggregate[column] + 1)
    (said,) = differences(tmp_path, monkeypatch, aggregate)
    assert "the aggregate differs from that of pandas" in said


def test_missing_group_of_the_aggregate_is_a_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (said,) = differences(tmp_path, monkeypatch, right_aggregate().drop(index=3))
    assert "the aggregate differs from that of pandas" in said
