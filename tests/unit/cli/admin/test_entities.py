"""Quota entities, the transaction to abort, and the sizes of log directories."""

import argparse

import pytest

from kafkacore.admin import AbortTransactionSpec, PartitionProducerState, ProducerState
from kafkacore.cli.admin import quotas
from kafkacore.cli.admin.log_dirs import log_dirs
from kafkacore.cli.admin.transactions import abort_spec
from kafkacore.cli.command_parser import CommandParser
from kafkacore.cli.common import CommandError
from kafkacore.structs import TopicPartition

ORDERS = TopicPartition("orders", 0)


@pytest.fixture
def quota_entity():
    parser = CommandParser()
    quotas.add_parser(parser.add_choices("command"))

    def parse(*words):
        return quotas.entity(parser.parse_args(["quotas", "describe", *words]))

    return parse


def test_entity_has_the_types_that_are_given(quota_entity):
    assert quota_entity() == {}
    assert quota_entity("--user", "alice", "--default-client-id") == {"user": "alice", "client-id": None}
    assert quota_entity("--ip", "192.0.2.7") == {"ip": "192.0.2.7"}
    with pytest.raises(SystemExit):
        quota_entity("--user", "alice", "--default-user")


def test_name_of_an_entity_is_one_line():
    assert quotas.entity_name({"client-id": None, "user": "a\n"}) == r"user=a\n,client-id=(default)"


class Producers:
    """A partition with one open transaction, at offset 7."""

    def describe_producers(self, partitions):
        states = [ProducerState(5, 2, 9, 0, -1, 7), ProducerState(6, 0, 9, 0, 3, -1)]
        return {tp: PartitionProducerState(states) for tp in partitions}


def test_transaction_is_found_by_its_start_offset():
    spec = abort_spec(Producers(), ORDERS, argparse.Namespace(start_offset=7))
    assert spec == AbortTransactionSpec(ORDERS, 5, 2, 0)
    with pytest.raises(CommandError, match="no open transaction of orders-0 starts at offset 8"):
        abort_spec(Producers(), ORDERS, argparse.Namespace(start_offset=8))


def test_transaction_is_that_of_the_producer():
    given = argparse.Namespace(start_offset=None, producer_id=5, producer_epoch=2, coordinator_epoch=-1)
    assert abort_spec(Producers(), ORDERS, given) == AbortTransactionSpec(ORDERS, 5, 2, -1)


def test_size_of_a_log_directory_is_that_of_its_partitions():
    def partition(number, size):
        return {"partition_index": number, "partition_size": size, "offset_lag": 0, "is_future_key": False}

    topics = [{"name": "orders", "partitions": [partition(1, 30), partition(0, 12)]}]
    volume = {"total_bytes": -1, "usable_bytes": 100}
    (folder, failed) = log_dirs(
        [
            {
                "broker": 1,
                "log_dirs": [
                    {"log_dir": "/a", "error_code": 0, "topics": topics, **volume},
                    {"log_dir": "/b", "error_code": 56, "topics": [], **volume},
                ],
            }
        ]
    )
    assert (folder["size"], folder["total_bytes"], folder["usable_bytes"]) == (42, None, 100)
    assert [each["partition"] for each in folder["partitions"]] == [0, 1]
    assert (failed["error"], failed["size"]) == ("KAFKA_STORAGE_ERROR", 0)
