"""Columns that hold one value: correct in every row, built once, and without importing pandas."""

import subprocess
import sys

import pytest
from eventually import BUDGET_S

from kafkacore.decode.constant_columns import ConstantColumns, repeated_int32, repeated_text


@pytest.mark.parametrize("text", ["topic", "", "täg", None])
@pytest.mark.parametrize("count", [0, 1, 1_000])
def test_text_is_in_every_row(text, count):
    column = repeated_text(text, count)
    column.validate(full=True)
    assert column.to_pylist() == [text] * count


@pytest.mark.parametrize("number", [0, 2**31 - 1, None])
def test_number_is_in_every_row(number):
    column = repeated_int32(number, 5)
    column.validate(full=True)
    assert column.to_pylist() == [number] * 5


def test_batches_of_one_partition_share_the_memory():
    columns = ConstantColumns()
    first, second = columns.topics("t", 900), columns.topics("t", 5)
    assert [buffer.address for buffer in first.buffers()[1:]] == [
        buffer.address for buffer in second.buffers()[1:]
    ]
    assert columns.partitions(3, 7).buffers()[1].address == columns.partitions(3, 9).buffers()[1].address


def test_larger_batches_and_other_partitions_are_right_too():
    columns = ConstantColumns()
    for topic, partition, count in [("a", 0, 3), ("a", 0, 5_000), ("b", 1, 2), (None, None, 2), ("b", 1, 0)]:
        assert columns.topics(topic, count).to_pylist() == [topic] * count
        assert columns.partitions(partition, count).to_pylist() == [partition] * count


def test_kafkas_columns_do_not_import_pandas():
    """Build the columns without pandas, which pyarrow imports for its first scalar.

    The import costs each worker a quarter of a second and 30 MB.
    """
    code = (
        "import sys, pyarrow as pa\n"
        "from kafkacore.record import ColumnBuilder\n"
        "from kafkacore.spark.columns.output import KafkaColumns\n"
        "from kafkacore.spark.columns.schema import all_columns\n"
        "output = KafkaColumns(all_columns(True)).output()\n"
        "builder = ColumnBuilder(output.fetched, timestamp_unit='us', timezone='UTC')\n"
        "assert output.batch(pa.record_batch(builder.finish()), 't', 0).schema == output.schema\n"
        "assert 'pandas' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=BUDGET_S)
