"""Which tests run in one process when there are several, and which begin first.

Ids of tests in, the order of work for pytest-xdist out. Does not know: how many processes there are.

Tests of a file stay together, in their order, since they share what its fixtures have made; those that share
a Spark session do too, because starting one takes longer than most of them. What takes long begins first:
else all would wait at the end for the one process that has it.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

#: Rooms that take longest, and folders of which no file takes long; the rest comes after them.
LONGEST_FIRST = (
    "cli/test_interrupt.py",
    "with Spark",
    "with both sources",
    "integration/spark/test_cluster.py",
    "integration/test_bench_spark.py",
    "integration/test_killed_producer.py",
    "integration/test_exactly_once.py",
    "integration/test_two_brokers.py",
    "integration/test_java_tools.py",
    "integration/test_bench_java.py",
    "integration/test_mixed_group.py",
    "integration/test_group_outages.py",
    "integration/test_apache_kafka.py",
    "integration/test_slow_link.py",
    "integration/test_kill.py",
    "test_bench.py",
    "spark/test_example.py",
    "spark/test_connect.py",
    "spark/test_worker_logs.py",
    "integration",
    "producer",
    "tools",
    "testing",
    "broker",
    "faults",
    "property",
)
#: Programs of their own, which start a Spark of their own.
WITHOUT_THE_SESSION = (
    "cli/test_interrupt.py",
    "spark/test_example.py",
    "spark/test_connect.py",
    "spark/test_worker_logs.py",
    "integration/spark/test_cluster.py",
)


def room(test_id: str) -> str:
    """What has to run in one process with the test."""
    file = test_id.split("::")[0].removeprefix("tests/")
    if file in WITHOUT_THE_SESSION:
        return file
    if file.startswith("integration/spark/"):
        return "with both sources"
    if file.startswith(("cli/", "spark/")):
        return "with Spark"
    return file


def place(name: str) -> int:
    """The lower, the sooner."""
    folder = name.split("/")[0]
    for known in (name, folder):
        if known in LONGEST_FIRST:
            return LONGEST_FIRST.index(known)
    return len(LONGEST_FIRST)


class RoomScheduling(LoadScopeScheduling):
    """xdist's scheduling by scopes, with the scopes and the order of this module."""

    def _split_scope(self, nodeid: str) -> str:
        return room(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        self.workqueue.move_to_end(min(self.workqueue, key=place), last=False)
        super()._assign_work_unit(node)
