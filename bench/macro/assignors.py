"""Compare the assignors of the embedded broker with those of Apache Kafka's group coordinator.

    python bench/macro/assignors.py                  # about one minute; needs Java
    python bench/macro/assignors.py --small          # only checks that it still runs

Both sides assign the same groups: a group of new members, and a balanced group that one member has left.
Java first repeats each assignment so that the JVM compiles it; these runs are not counted. The time of our
side includes the search for the members whose assignment has changed. Kafka's coordinator searches for them
after the assignor has returned, so the time of Java does not include it. Each figure is the median of all
rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from setting import PROJECT

from kafkacore.bench.machine import describe_machine
from kafkacore.broker.group.assignor import ASSIGNORS, Assignment, MemberSubscription

sys.path.insert(0, str(PROJECT / "tests" / "support"))

from model.random_consumer_groups import ConsumerGroupCase
from peers.group_assignors import JavaGroupAssignors, question, started_group_assignors
from peers.jars import LIKE_A_SERVER, SHORT_LIVED

OURS, THEIRS = "kafkacore", "Apache Kafka 4.3.1"
#: Share of the topics that a subscription leaves out, in a group whose members have different topics.
LEFT_OUT = 0.4
#: Number of different subscriptions in such a group.
SUBSCRIPTIONS = 20


def new_group(topics: int, partitions: int, members: int, is_homogeneous: bool) -> ConsumerGroupCase:
    """Return a group of new members."""
    chance = Random(1)
    counts = {UUID(int=chance.getrandbits(128)): partitions for _ in range(topics)}
    shared = frozenset(counts)
    if is_homogeneous:
        subscriptions = [shared]
    else:
        size = max(1, round(topics * (1 - LEFT_OUT)))
        subscriptions = [
            shared,
            *(frozenset(chance.sample(list(counts), size)) for _ in range(SUBSCRIPTIONS - 1)),
        ]
    joined = {
        f"{chance.getrandbits(128):032x}": MemberSubscription(None, subscriptions[n % len(subscriptions)], {})
        for n in range(members)
    }
    return ConsumerGroupCase(joined, counts, is_homogeneous)


def assign(name: str, case: ConsumerGroupCase) -> dict[str, Assignment]:
    return ASSIGNORS[name].assign(case.members, case.partition_counts, is_homogeneous=case.is_homogeneous)


def after_a_leave(name: str, case: ConsumerGroupCase) -> ConsumerGroupCase:
    """Return the group with its assignment, without one of its members."""
    assigned = assign(name, case)
    members = {
        # The coordinator decodes each topic id from a record, so equal ids are different objects.
        member_id: MemberSubscription(
            None,
            member.topic_ids,
            {UUID(int=topic_id.int): parts for topic_id, parts in assigned[member_id].items()},
        )
        for member_id, member in case.members.items()
    }
    members.pop(next(member_id for member_id, member in members.items() if member.assigned))
    return ConsumerGroupCase(members, case.partition_counts, case.is_homogeneous)


def cases(name: str, is_small: bool) -> Iterator[tuple[str, ConsumerGroupCase]]:
    """Yield the groups to measure, each with its description."""
    members = 20 if is_small else 10_000
    for topics, partitions in ((1, 20), (5, 4)) if is_small else ((1, 10_000), (100, 100)):
        for is_homogeneous in (True, False):
            what = f"{name}, {members} members, {topics} of {partitions} partitions"
            what += ", same topics" if is_homogeneous else ", different topics"
            case = new_group(topics, partitions, members, is_homogeneous)
            yield f"{what}, new", case
            yield f"{what}, one leaves", after_a_leave(name, case)


def measure(name: str, case: ConsumerGroupCase, repeat: int) -> dict[str, float]:
    """Return the medians of our wall and CPU time in milliseconds."""
    wall, cpu = [], []
    for _ in range(repeat):
        began_cpu, began = time.process_time_ns(), time.perf_counter_ns()
        assign(name, case)
        wall.append(time.perf_counter_ns() - began)
        cpu.append(time.process_time_ns() - began_cpu)
    return medians(wall, cpu)


def measure_java(
    java: JavaGroupAssignors, name: str, case: ConsumerGroupCase, warm_up: int, repeat: int
) -> dict[str, float]:
    """Return the medians of Java's wall and CPU time in milliseconds, after a warm-up."""
    answer = java.ask(question(name, case, repeat=warm_up + repeat, is_ordered=False))
    return medians(answer["wall_nanos"][warm_up:], answer["cpu_nanos"][warm_up:])


def medians(wall_nanos: list[int], cpu_nanos: list[int]) -> dict[str, float]:
    return {
        "wall_ms": statistics.median(wall_nanos) / 1e6,
        "cpu_ms": statistics.median(cpu_nanos) / 1e6,
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each side (default: 3)")
    parser.add_argument("--repeat", type=int, default=15, help="assignments of a round (default: 15)")
    parser.add_argument("--warm-up", type=int, default=40, help="Java's warm-up assignments (default: 40)")
    parser.add_argument(
        "--small",
        action="store_true",
        help="use tiny inputs to check that the script runs; the figures mean nothing",
    )
    parser.add_argument("--output", type=Path, metavar="FILE.json")
    arguments = parser.parse_args()
    rounds, repeat, warm_up = (
        (1, 2, 1) if arguments.small else (arguments.rounds, arguments.repeat, arguments.warm_up)
    )
    # A small run measures nothing, so its JVM needs only start quickly.
    jvm = SHORT_LIVED if arguments.small else LIKE_A_SERVER
    rows: list[dict[str, Any]] = []
    print(f"{'':70} {OURS:>17} {THEIRS:>22}\n{'ms of wall time and CPU time':70}")
    with (
        tempfile.TemporaryDirectory() as folder,
        started_group_assignors(Path(folder) / "errors", jvm=jvm) as java,
    ):
        for name in ASSIGNORS:
            for what, case in cases(name, arguments.small):
                runs: dict[str, list[dict[str, float]]] = {OURS: [], THEIRS: []}
                for number in range(rounds):
                    # The JVM keeps its compiled code from round to round.
                    runs[THEIRS].append(measure_java(java, name, case, 0 if number else warm_up, repeat))
                    runs[OURS].append(measure(name, case, repeat))
                median = {
                    side: {figure: statistics.median(one[figure] for one in many) for figure in many[0]}
                    for side, many in runs.items()
                }
                ours, theirs = median[OURS], median[THEIRS]
                print(
                    f"{what:70} {ours['wall_ms']:8.2f} {ours['cpu_ms']:8.2f}"
                    f" {theirs['wall_ms']:13.2f} {theirs['cpu_ms']:8.2f}",
                    flush=True,
                )
                rows.append({"what": what, "runs": runs, "median": median})
    if arguments.output:
        result = {"schema": 1, "machine": describe_machine(), "assignors": rows}
        arguments.output.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
