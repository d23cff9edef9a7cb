"""The tables of Spark options from which the reference is generated."""

from __future__ import annotations

import pytest

from kafkacore.spark.log_files.options import OPTIONS as LOG_OPTIONS
from kafkacore.spark.options.option import SparkOption
from kafkacore.spark.reader.options import BATCH_ONLY, STREAM_ONLY
from kafkacore.spark.reader.options import OPTIONS as SOURCE_OPTIONS
from kafkacore.spark.sink.options import SINK_OPTIONS
from kafkacore.spark.typed.options import FORMAT_OPTIONS

ROWS = [*SOURCE_OPTIONS.values(), *SINK_OPTIONS.values(), *LOG_OPTIONS.values(), *FORMAT_OPTIONS.values()]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_option_is_documented(row: SparkOption) -> None:
    assert row.documentation.endswith(".")
    assert row.default is None or not row.shown_default


def test_options_of_one_kind_of_read() -> None:
    assert BATCH_ONLY == ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
    assert STREAM_ONLY == ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
