"""Move replicas between the log directories of their brokers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kafkacore.cli.common import CommandError
from kafkacore.clock import Clock
from kafkacore.errors import ReplicaNotAvailableError
from kafkacore.structs import TopicPartition, TopicPartitionReplica, partition_name

if TYPE_CHECKING:
    from kafkacore.admin import KafkaAdminClient

#: Pause before a directory is set again for a replica that its broker does not have yet.
_PAUSE_MS = 100.0


class LogDirState(NamedTuple):
    """The current directory of a replica and the directory to which it moves. Either may be ``None``."""

    current: str | None = None
    future: str | None = None

    def status(self, wanted: str) -> str:
        """Return the status of a move. The values are the same as those of a reassignment's status."""
        if self.future is not None:
            return "in progress"
        return "complete" if self.current == wanted else "different"


def start_moves(
    admin: KafkaAdminClient, wanted: Mapping[TopicPartitionReplica, str], timeout_ms: float, clock: Clock
) -> None:
    """Set the directories of replicas.

    A broker has a replica only some time after its reassignment has started.

    Parameters
    ----------
    wanted:
        Replica → absolute path of the directory.
    timeout_ms:
        Time limit in milliseconds for brokers to have the replicas.

    Raises
    ------
    CommandError
        If a broker refuses a directory, or does not have a replica in time.
    """
    deadline_ms = clock.monotonic_ms() + timeout_ms
    left = dict(wanted)
    while left:
        for replica, error in admin.alter_replica_log_dirs(left).items():
            if not error.errno:
                del left[replica]
            elif not issubclass(error, ReplicaNotAvailableError):
                raise CommandError(f"{_name(replica)} does not move to {left[replica]!r}: {error.message}")
        if left:
            if clock.monotonic_ms() >= deadline_ms:
                raise CommandError(
                    f"{', '.join(map(_name, left))}: the broker has no replica yet; run the command again "
                    "later, to set the directory"
                )
            clock.sleep_ms(_PAUSE_MS)


def log_dir_states(
    admin: KafkaAdminClient, replicas: Iterable[TopicPartitionReplica]
) -> dict[TopicPartitionReplica, LogDirState]:
    """Return the directories of replicas."""
    wanted = set(replicas)
    if not wanted:
        return {}
    topics: dict[str, list[int]] = {}
    for topic, number in {(each.topic, each.partition) for each in wanted}:
        topics.setdefault(topic, []).append(number)
    found = dict.fromkeys(wanted, LogDirState())
    for of_broker in admin.describe_log_dirs(topics, sorted({each.broker_id for each in wanted})):
        for folder in of_broker["log_dirs"]:
            for topic in folder["topics"]:
                for partition in topic["partitions"]:
                    replica = TopicPartitionReplica(
                        topic["name"], partition["partition_index"], of_broker["broker"]
                    )
                    if replica not in wanted:
                        continue
                    if partition["is_future_key"]:
                        found[replica] = found[replica]._replace(future=folder["log_dir"])
                    else:
                        found[replica] = found[replica]._replace(current=folder["log_dir"])
    return found


def _name(replica: TopicPartitionReplica) -> str:
    tp = TopicPartition(replica.topic, replica.partition)
    return f"{partition_name(tp)} on broker {replica.broker_id}"
