"""JSON files of partitions: their format is checked, whatever they contain."""

import json

import pytest

from kafkacore.cli.json_files import read_partitions, whole_number
from kafkacore.errors import KafkaConfigurationError
from kafkacore.structs import TopicPartition


def test_partitions_are_read(tmp_path):
    file = tmp_path / "partitions.json"
    partition = {"topic": "orders", "partition": 2, "offset": 5}
    file.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    found = read_partitions(file)
    assert found == {TopicPartition("orders", 2): partition}
    assert whole_number(file, partition, "offset") == 5


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "is not {"),
        ('{"partitions": []}', "is not {"),
        ('{"version": 2, "partitions": [{"topic": "a", "partition": 0}]}', "is not {"),
        ('{"partitions": [{"partition": 0}]}', "has no topic"),
        ('{"partitions": [7]}', "7 has no topic"),
        ('{"partitions": [{"topic": "a"}]}', "partition in .* is not a whole number of 0 or more"),
        ('{"partitions": [{"topic": "a", "partition": true}]}', "is not a whole number"),
        ('{"partitions": [{"topic": "a", "partition": 4294967296}]}', "is not a whole number"),
        ('{"partitions": [{"topic": "a", "partition": 0}, {"topic": "a", "partition": 0}]}', "a-0 .* twice"),
    ],
)
def test_file_of_another_format_is_refused(tmp_path, text, sentence):
    file = tmp_path / "partitions.json"
    file.write_text(text)
    with pytest.raises(KafkaConfigurationError, match=sentence):
        read_partitions(file)
