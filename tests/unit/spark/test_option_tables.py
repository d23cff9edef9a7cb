"""The tables of Spark's options and docs/SPARK.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkacore.spark.log_files.options import OPTIONS as LOG_OPTIONS
from kafkacore.spark.reader.options import OPTIONS as SOURCE_OPTIONS
from kafkacore.spark.sink.options import SINK_OPTIONS

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "SPARK.md"


@pytest.mark.parametrize("name", sorted({*SOURCE_OPTIONS, *SINK_OPTIONS, *LOG_OPTIONS}))
def test_option_is_documented(name: str) -> None:
    assert f"`{name}`" in DOCUMENT.read_text(encoding="utf-8")
