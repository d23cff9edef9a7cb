"""A consumer group member as a process that prints each of its events as a line of JSON.

    python -m model.group_member CLIENT OPTIONS-AS-JSON

``CLIENT`` is kafkacore, kafkacore.aio, kafka-python, confluent or aiokafka; ``java/GroupMember.java`` is the
Java version.
The member commits processed records after each poll. It leaves the group and exits at the end of its standard
input. A line of input is a number of seconds to compute in C while holding the GIL.

Processing a record means reporting it. The reports are the events of :mod:`model.group_history`, with the
time of the monotonic clock. ``bug`` plants a defect for the checker to find: "commit first", "no revoke" or
"skip".
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

POLL_MS = 100
#: kafka-python 3.0.12 never gets partitions if a poll ends while its join is being answered.
KAFKA_PYTHONS_POLL_MS = 1_000
#: Seconds after which a commit of librdkafka counts as failed. With the consumer protocol, one did not return
#: within a minute of a restart of the broker (confluent-kafka 2.16.1).
LIBRDKAFKAS_COMMIT_S = 15
MOST_RECORDS = 40
#: Seconds of work for the records of a poll, unless the options set ``work_s``.
WORK_S = 0.005


def report(kind: str, **what: Any) -> None:
    """Print one line in one write, so that a kill does not split it."""
    line = json.dumps({"time_ns": time.monotonic_ns(), "kind": kind, "what": what})
    os.write(1, line.encode() + b"\n")


class Client(Protocol):
    """Interface of a consumer to the loop."""

    def poll(self) -> dict[int, list[int]]: ...
    def commit(self, offsets: dict[int, int]) -> str | None: ...
    def generation(self) -> int | None: ...
    def close(self) -> None: ...


class Member:
    """The loop and the rebalance listener for any client."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.client: Client
        self.bug: str | None = options.get("bug")
        self.work_s: float = options.get("work_s", WORK_S)
        self.owned: set[int] = set()
        self.pending: dict[int, int] = {}
        self.polls = 0
        #: Seconds for which to be busy, as read from standard input.
        self.orders: queue.SimpleQueue[float] = queue.SimpleQueue()

    def on_assigned(self, partitions: Iterable[int]) -> None:
        added = sorted(partitions)
        self.owned.update(added)
        self._report_change("assigned", added)

    def on_revoked(self, partitions: Iterable[int]) -> None:
        gone = sorted(partitions)
        if self.bug == "no revoke":
            return
        self.commit()
        self._gone("revoked", gone)

    def on_lost(self, partitions: Iterable[int]) -> None:
        self._gone("lost", sorted(partitions))

    def _gone(self, kind: str, partitions: list[int]) -> None:
        self.owned.difference_update(partitions)
        for partition in partitions:
            self.pending.pop(partition, None)
        self._report_change(kind, partitions)

    def _report_change(self, kind: str, partitions: list[int]) -> None:
        report(kind, partitions=partitions, owned=sorted(self.owned), generation=self.generation())

    def generation(self) -> int | None:
        return self.client.generation()

    def turn(self) -> None:
        self.process(self.client.poll())
        # Retry a commit that failed during a rebalance.
        self.commit()

    def process(self, records: dict[int, list[int]]) -> None:
        self.polls += bool(records)
        if self.bug == "commit first":
            self.pending = {partition: offsets[-1] + 1 for partition, offsets in records.items()}
            self.commit()
        for partition, offsets in records.items():
            # The last record of a partition is never skipped: its commit ends the test.
            if self.bug == "skip" and self.polls % 3 == 0 and len(offsets) > 1:
                offsets = offsets[1:]
            report("records", partition=partition, first=offsets[0], last=offsets[-1])
            if offsets != list(range(offsets[0], offsets[-1] + 1)):
                report("records", partition=partition, first=-1, last=-1)
            self.pending[partition] = offsets[-1] + 1
        if records:
            time.sleep(self.work_s)
        if not self.orders.empty():
            self.compute(self.orders.get())

    def compute(self, seconds: float) -> None:
        """Compute while holding the GIL: PyDLL, unlike CDLL, keeps it during the call."""
        report("busy", seconds=seconds)
        ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))

    def commit(self) -> None:
        if offsets := self.begin_commit():
            self.end_commit(offsets, self.client.commit(offsets))

    def begin_commit(self) -> dict[int, int]:
        offsets = dict(self.pending)
        if offsets:
            report("committing", offsets=offsets)
        return offsets

    def end_commit(self, offsets: dict[int, int], error: str | None) -> None:
        if error is None:
            report("committed", offsets=offsets)
            self.pending.clear()
        else:
            report("commit_failed", offsets=offsets, error=error)

    def live(self, stopped: threading.Event) -> None:
        while not stopped.is_set():
            self.turn()
        self.client.close()


def _membership(options: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of the group protocol. In the new one, the broker decides the time-outs."""
    if options.get("group_protocol") == "consumer":
        assignor = options.get("remote_assignor")
        return {"group_protocol": "consumer"} | ({"group_remote_assignor": assignor} if assignor else {})
    return {
        "partition_assignment_strategy": options["strategy"],
        "session_timeout_ms": options["session_timeout_ms"],
        "heartbeat_interval_ms": min(500, options["session_timeout_ms"] // 6),
    }


class KafkaPythonLike:
    """The consumer of kafka-python or kafkacore, which have the same API."""

    def __init__(self, kafkacore: bool, member: Member, options: dict[str, Any]) -> None:
        if kafkacore:
            from kafkacore import KafkaConsumer
            from kafkacore.consumer import ConsumerRebalanceListener
            from kafkacore.errors import KafkaError
            from kafkacore.structs import OffsetAndMetadata, TopicPartition

            membership = _membership(options)
        else:
            from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition
            from kafka.errors import KafkaConnectionError, KafkaError

            membership = _membership(options)
            membership["partition_assignment_strategy"] = [_kafka_python_assignor(options["strategy"])]
        self._poll_ms = POLL_MS if kafkacore else KAFKA_PYTHONS_POLL_MS
        self._topic = options["topic"]
        self._error = KafkaError
        #: kafka-python's poll sometimes raises while its broker is down; that of kafkacore must not.
        self._outages: tuple[type[Exception], ...] = () if kafkacore else (KafkaConnectionError,)
        self._partition: Callable[[int], Any] = lambda number: TopicPartition(self._topic, number)
        self._offset: Callable[[int], Any] = lambda offset: OffsetAndMetadata(offset, "", -1)
        self._consumer: Any = KafkaConsumer(
            bootstrap_servers=options["servers"],
            group_id=options["group"],
            group_instance_id=options.get("instance"),
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            max_poll_records=MOST_RECORDS,
            metadata_max_age_ms=5_000,
            request_timeout_ms=options.get("request_timeout_ms", 30_000),
            **membership,
        )

        def numbers(partitions: Iterable[Any]) -> list[int]:
            return [partition.partition for partition in partitions]

        class Listener(ConsumerRebalanceListener):  # type: ignore[misc, valid-type]
            def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
                member.on_assigned(numbers(assigned))

            def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
                member.on_revoked(numbers(revoked))

            def on_partitions_lost(self, lost: Iterable[Any]) -> None:
                member.on_lost(numbers(lost))

        if not kafkacore:
            # A leader that does not know the topic yet joins twice, see above.
            self._consumer.partitions_for_topic(self._topic)
        self._consumer.subscribe([self._topic], listener=Listener())

    def poll(self) -> dict[int, list[int]]:
        try:
            found = self._consumer.poll(timeout_ms=self._poll_ms)
        except self._outages:
            return {}
        return {partition.partition: [one.offset for one in records] for partition, records in found.items()}

    def commit(self, offsets: dict[int, int]) -> str | None:
        try:
            self._consumer.commit({self._partition(n): self._offset(offset) for n, offset in offsets.items()})
        except self._error as error:
            return repr(error)
        return None

    def generation(self) -> int | None:
        found: int = self._consumer.group_metadata().generation_id
        return found if found >= 0 else None

    def close(self) -> None:
        self._consumer.close()


def _kafka_python_assignor(name: str) -> Any:
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

    known = (
        RangePartitionAssignor,
        RoundRobinPartitionAssignor,
        StickyPartitionAssignor,
        CooperativeStickyAssignor,
    )
    return {assignor.name: assignor for assignor in known}[name]


class Confluent:
    """The consumer of confluent-kafka (librdkafka)."""

    def __init__(self, member: Member, options: dict[str, Any]) -> None:
        import confluent_kafka

        self._kafka = confluent_kafka
        self._topic = options["topic"]
        config = {
            "bootstrap.servers": options["servers"],
            "group.id": options["group"],
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": 5_000,
        }
        # The names of the settings are kafka-python's with dots.
        membership = _membership(options)
        config |= {name.replace("_", "."): value for name, value in membership.items()}
        if options.get("instance"):
            config["group.instance.id"] = options["instance"]
        self._consumer = confluent_kafka.Consumer(config)

        def numbers(partitions: Iterable[Any]) -> list[int]:
            return [partition.partition for partition in partitions]

        # Partition → offsets of the current poll. A callback during the poll may revoke partitions.
        self._found: dict[int, list[int]] = {}

        def gone(partitions: Iterable[Any]) -> list[int]:
            for number in numbers(partitions):
                self._found.pop(number, None)
            return numbers(partitions)

        self._consumer.subscribe(
            [self._topic],
            on_assign=lambda _, partitions: member.on_assigned(numbers(partitions)),
            on_revoke=lambda _, partitions: member.on_revoked(gone(partitions)),
            on_lost=lambda _, partitions: member.on_lost(gone(partitions)),
        )

    def poll(self) -> dict[int, list[int]]:
        found = self._found = {}
        message = self._consumer.poll(POLL_MS / 1000)
        while message is not None:
            if message.error() is None:
                found.setdefault(message.partition(), []).append(message.offset())
            message = None if sum(map(len, found.values())) >= MOST_RECORDS else self._consumer.poll(0)
        return found

    def commit(self, offsets: dict[int, int]) -> str | None:
        found: list[str | None] = []
        thread = threading.Thread(target=lambda: found.append(self._commit(offsets)), daemon=True)
        thread.start()
        thread.join(LIBRDKAFKAS_COMMIT_S)
        return found[0] if found else f"no result after {LIBRDKAFKAS_COMMIT_S} s"

    def _commit(self, offsets: dict[int, int]) -> str | None:
        partitions = [self._kafka.TopicPartition(self._topic, n, offset) for n, offset in offsets.items()]
        try:
            done = self._consumer.commit(offsets=partitions, asynchronous=False)
        except self._kafka.KafkaException as error:
            return repr(error)
        failed = [one.error for one in done or () if one.error is not None]
        return repr(failed) if failed else None

    def generation(self) -> int | None:
        return None

    def close(self) -> None:
        self._consumer.close()


class LoopMember(Member):
    """kafkacore's consumer for asyncio."""

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__(options)
        self._options = options
        self._consumer: Any

    def generation(self) -> int | None:
        found: int = self._consumer.group_metadata().generation_id
        return found if found >= 0 else None

    def live(self, stopped: threading.Event) -> None:
        asyncio.run(self._live(stopped))

    async def _live(self, stopped: threading.Event) -> None:
        self._consumer = self._subscribed()
        await self._consumer.start()
        while not stopped.is_set():
            found = await self._consumer.getmany(timeout_ms=POLL_MS, max_records=MOST_RECORDS)
            # No other task runs between the return of the records and the end of this call.
            self.process({tp.partition: [one.offset for one in records] for tp, records in found.items()})
            await self._commit()
        await self._consumer.stop()

    def _subscribed(self) -> Any:
        from kafkacore.aio import AIOKafkaConsumer
        from kafkacore.consumer import AsyncConsumerRebalanceListener

        member, options = self, self._options

        def numbers(partitions: Iterable[Any]) -> list[int]:
            return sorted(partition.partition for partition in partitions)

        class Listener(AsyncConsumerRebalanceListener):
            async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
                member.on_assigned(numbers(assigned))

            async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
                if member.bug != "no revoke":
                    await member._commit()
                    member._gone("revoked", numbers(revoked))

            async def on_partitions_lost(self, lost: Iterable[Any]) -> None:
                member.on_lost(numbers(lost))

        consumer = AIOKafkaConsumer(
            bootstrap_servers=options["servers"],
            group_id=options["group"],
            group_instance_id=options.get("instance"),
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            metadata_max_age_ms=5_000,
            **_membership(options),
        )
        consumer.subscribe([options["topic"]], listener=Listener())
        return consumer

    async def _commit(self) -> None:
        from kafkacore import TopicPartition
        from kafkacore.errors import KafkaError

        if not (offsets := self.begin_commit()):
            return
        places = {TopicPartition(self._options["topic"], n): offset for n, offset in offsets.items()}
        try:
            await self._consumer.commit(places)
        except KafkaError as error:
            self.end_commit(offsets, repr(error))
        else:
            self.end_commit(offsets, None)


class AioMember(Member):
    """aiokafka's consumer. Its rebalances run concurrently with its polls in the same event loop."""

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__(options)
        self._options = options
        self._consumer: Any
        self._is_leaving = False

    def generation(self) -> int | None:
        return None

    def live(self, stopped: threading.Event) -> None:
        asyncio.run(self._live(stopped))

    async def _live(self, stopped: threading.Event) -> None:
        #: Serializes the commits of the loop and of rebalances.
        self._committing = asyncio.Lock()
        self._consumer = self._subscribed()
        await self._consumer.start()
        while not stopped.is_set():
            found = await self._consumer.getmany(timeout_ms=POLL_MS, max_records=MOST_RECORDS)
            # No other task runs between the return of the records and the end of this call.
            self.process({tp.partition: [one.offset for one in records] for tp, records in found.items()})
            await self._commit()
        self._give_up_all()
        await self._consumer.stop()

    def _give_up_all(self) -> None:
        """Report all partitions as revoked.

        aiokafka does not call the listener when it leaves, and continues to close its connections while the
        group gives the partitions to other members.
        """
        self._is_leaving = True
        self._gone("revoked", sorted(self.owned))

    def _subscribed(self) -> Any:
        import aiokafka
        from aiokafka.coordinator.assignors.range import RangePartitionAssignor
        from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
        from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

        member, options = self, self._options
        known = (RangePartitionAssignor, RoundRobinPartitionAssignor, StickyPartitionAssignor)
        assignors = {one.name: one for one in known}

        class Listener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]
            # A rebalance may complete before the member leaves. The member does not use these partitions.
            def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
                if not member._is_leaving:
                    member.on_assigned([one.partition for one in assigned])

            async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
                if not member._is_leaving:
                    await member.on_revoked(sorted(one.partition for one in revoked))

        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=options["servers"],
            group_id=options["group"],
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            partition_assignment_strategy=[assignors[options["strategy"]]],
            session_timeout_ms=options["session_timeout_ms"],
            heartbeat_interval_ms=min(500, options["session_timeout_ms"] // 6),
            metadata_max_age_ms=5_000,
        )
        consumer.subscribe([options["topic"]], listener=Listener())
        return consumer

    async def on_revoked(self, partitions: list[int]) -> None:
        """Report lost or revoked partitions, which aiokafka distinguishes in its state only.

        aiokafka may rejoin for another reason, such as new metadata, before it learns that its session has
        expired. The coordinator rejects a commit then.
        """
        await self._commit()
        async with self._committing:
            has_generation = self._consumer._coordinator.generation >= 0
            is_member = has_generation and await self._may_commit(partitions)
        if not self._is_leaving:
            self._gone("revoked" if is_member else "lost", partitions)

    async def _may_commit(self, partitions: list[int]) -> bool:
        """Return whether the group still accepts a commit: the same offset of one partition again."""
        from aiokafka import TopicPartition
        from aiokafka.errors import KafkaError

        for place in (TopicPartition(self._options["topic"], number) for number in partitions):
            try:
                if (offset := await self._consumer.committed(place)) is not None:
                    await self._consumer.commit({place: offset})
                    return True
            except KafkaError:
                return False
        return True

    async def _commit(self) -> None:
        from aiokafka import TopicPartition
        from aiokafka.errors import KafkaError

        async with self._committing:
            if not (offsets := self.begin_commit()):
                return
            places = {TopicPartition(self._options["topic"], n): offset for n, offset in offsets.items()}
            try:
                await self._consumer.commit(places)
            except KafkaError as error:
                self.end_commit(offsets, repr(error))
            else:
                self.end_commit(offsets, None)


def main() -> None:
    client, options = sys.argv[1], json.loads(sys.argv[2])
    stopped = threading.Event()
    kinds = {"aiokafka": AioMember, "kafkacore.aio": LoopMember}
    member = kinds.get(client, Member)(options)

    def obey() -> None:
        for line in sys.stdin:
            member.orders.put(float(line))
        stopped.set()

    threading.Thread(target=obey, daemon=True).start()
    if client == "confluent":
        member.client = Confluent(member, options)
    elif client not in kinds:
        member.client = KafkaPythonLike(client == "kafkacore", member, options)
    report("started")
    member.live(stopped)
    report("closed")


if __name__ == "__main__":
    main()
