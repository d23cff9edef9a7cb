"""Moves between log directories wait until the broker has the replica."""

import pytest

from kafkacore.cli.admin.log_dir_moves import start_moves
from kafkacore.cli.common import CommandError
from kafkacore.errors import LogDirNotFoundError, NoError, ReplicaNotAvailableError
from kafkacore.structs import TopicPartitionReplica
from kafkacore.testing import VirtualClock

WANTED = {TopicPartitionReplica("orders", 0, 2): "/data/b"}


def test_replica_that_is_not_there_yet_is_tried_again(admin):
    clock = VirtualClock()
    admin.log_dir_errors = [ReplicaNotAvailableError, ReplicaNotAvailableError, NoError]
    start_moves(admin, WANTED, 1_000, clock)
    assert admin.log_dir_errors == []


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (LogDirNotFoundError, "orders-0 on broker 2 does not move to '/data/b': LOG_DIR_NOT_FOUND"),
        (ReplicaNotAvailableError, "orders-0 on broker 2: the broker has no replica yet"),
    ],
)
def test_move_that_cannot_start_is_an_error(admin, error, sentence):
    admin.log_dir_errors = [error] * 20
    with pytest.raises(CommandError, match=sentence):
        start_moves(admin, WANTED, 1_000, VirtualClock())
