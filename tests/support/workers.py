"""Distribution of tests to processes, for pytest-xdist.

Tests of a file stay together and in order, because they share fixtures. Tests that share a Spark session stay
together too, because starting one takes longer than most of them. Long tests begin first: otherwise all
processes would wait at the end for the one that runs them.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

#: Groups that take longest, and folders without a long file; the rest is run after them.
LONGEST_FIRST = (
    "system/cli/test_interrupt.py",
    "with Spark",
    "with both sources",
    "system/integration/spark/test_cluster.py",
    "system/integration/test_bench_spark.py",
    "system/integration/test_killed_producer.py",
    "system/integration/test_exactly_once.py",
    "system/integration/test_two_brokers.py",
    "system/integration/test_java_tools.py",
    "system/integration/test_bench_java.py",
    "system/integration/test_mixed_group.py",
    "system/integration/test_mixed_consumer_group.py",
    "system/integration/test_group_outages.py",
    "system/integration/test_apache_kafka.py",
    "system/integration/test_slow_link.py",
    "system/integration/test_kill.py",
    "system/test_bench.py",
    "system/spark/test_example.py",
    "system/spark/test_connect.py",
    "system/spark/test_worker_logs.py",
    "system/integration",
    "system",
    "unit/producer",
    "unit/broker",
    "unit/property",
)
#: Files that start a Spark of their own.
WITHOUT_THE_SESSION = (
    "system/cli/test_interrupt.py",
    "system/spark/test_example.py",
    "system/spark/test_connect.py",
    "system/spark/test_worker_logs.py",
    "system/integration/spark/test_cluster.py",
)


def room(test_id: str) -> str:
    """Return the group of tests that must run in the same process."""
    file = test_id.split("::")[0].removeprefix("tests/")
    if file in WITHOUT_THE_SESSION:
        return file
    if file.startswith("system/integration/spark/"):
        return "with both sources"
    if file.startswith(("system/cli/", "system/spark/")):
        return "with Spark"
    return file


def place(name: str) -> int:
    """Return the sort key; the lowest runs first."""
    for index, known in enumerate(LONGEST_FIRST):
        if name == known or name.startswith(f"{known}/"):
            return index
    return len(LONGEST_FIRST)


class RoomScheduling(LoadScopeScheduling):
    """xdist's scheduling by scopes, with the scopes and the order of this module."""

    def _split_scope(self, nodeid: str) -> str:
        return room(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        self.workqueue.move_to_end(min(self.workqueue, key=place), last=False)
        super()._assign_work_unit(node)
