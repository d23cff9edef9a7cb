"""The batches that a Delta table has stored, checked without Spark."""

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from kafkacore.errors import KafkaConfigurationError
from kafkacore.spark.pipeline import DeltaSink, PipelineError
from kafkacore.spark.pipeline.delta import DeltaWriter

ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})


@pytest.fixture
def sink(tmp_path):
    return DeltaSink(str(tmp_path / "table"))


def test_table_knows_the_batches_of_each_query(sink):
    writer = DeltaWriter(sink)
    assert not writer.is_written("q1", 0)
    writer.write(ROWS, "q1", 0)
    assert DeltaWriter(sink).is_written("q1", 0)
    assert not writer.is_written("q1", 1)
    assert not writer.is_written("q2", 0)
    writer.write(ROWS, "q2", 5)
    assert writer.is_written("q2", 4)
    assert DeltaTable(sink.path).to_pyarrow_table().num_rows == 4


def test_rows_and_their_number_are_one_commit(sink):
    DeltaWriter(sink).write(ROWS, "q1", 0)
    table = DeltaTable(sink.path)
    assert (table.version(), table.transaction_version("q1")) == (0, 0)


def test_new_column_is_refused_in_one_line_unless_schemas_are_merged(sink):
    DeltaWriter(sink).write(ROWS, "q", 0)
    wider = ROWS.append_column("name", pa.array(["a", "b"]))
    with pytest.raises(PipelineError, match="failed to write the batch to the Delta table") as refused:
        DeltaWriter(sink).write(wider, "q", 1)
    assert "\n" not in str(refused.value)
    DeltaWriter(DeltaSink(sink.path, options={"mergeSchema": "true"})).write(wider, "q", 1)
    assert DeltaTable(sink.path).to_pyarrow_table().num_rows == 4


def test_settings_of_the_storage_are_resolved_where_the_table_is_written(monkeypatch):
    monkeypatch.delenv("PIPE_KEY", raising=False)
    sink = DeltaSink("s3://bucket/table", options={"storage.AWS_SECRET_ACCESS_KEY": "${env:PIPE_KEY}"})
    with pytest.raises(
        KafkaConfigurationError, match="refers to the environment variable 'PIPE_KEY', which is not allowed"
    ):
        DeltaWriter(sink)


def test_missing_package_is_named(sink, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "deltalake", None)
    with pytest.raises(KafkaConfigurationError, match=r"pip install 'kafkacore\[delta\]'"):
        DeltaWriter(sink)
