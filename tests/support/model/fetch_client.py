"""A client with a fetch session that follows KIP-227, and its view of the log after each response."""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import UUID

from model.broker_harness import Answer, BrokerHarness

from kafkacore.protocol.generated.fetch import FetchRequest
from kafkacore.record import read_batches

FINAL, INITIAL = -1, 0


class PartitionState(NamedTuple):
    """The last data of a partition that the broker sent."""

    error: int
    high_watermark: int
    log_start_offset: int
    values: tuple[bytes, ...] = ()


class FetchClient:
    """Fetches partitions at given offsets, and sends only what has changed since its last request.

    Parameters
    ----------
    by_id:
        Name topics by id. Otherwise name them by name, in the last version that supports it.
    """

    def __init__(self, broker: BrokerHarness, *, by_id: bool = True) -> None:
        self.broker = broker
        self.by_id = by_id
        self.version = 18 if by_id else 12
        self.session_id = 0
        self.epoch = INITIAL
        #: Topic (name or id) and partition → offset, for the wanted partitions and for those in the session.
        self.wanted: dict[tuple[str | UUID, int], int] = {}
        self._sent: dict[tuple[str | UUID, int], int] = {}
        #: The last data of each partition, and the partitions of the last response.
        self.view: dict[tuple[str | UUID, int], PartitionState] = {}
        self.last: list[tuple[str | UUID, int]] = []

    def key(self, topic: str, partition: int) -> tuple[str | UUID, int]:
        state = self.broker.log_manager.topic_states[topic]
        return (state.topic_id if self.by_id else topic), partition

    def want(self, topic: str, partition: int, offset: int) -> None:
        self.wanted[self.key(topic, partition)] = offset

    def request(self, **arguments: Any) -> FetchRequest:
        """Return the next request of the session, which counts as sent."""
        is_full = self.epoch in (INITIAL, FINAL)
        new = {k: o for k, o in self.wanted.items() if is_full or self._sent.get(k) != o}
        gone = [] if is_full else [key for key in self._sent if key not in self.wanted]
        self._sent = dict(self.wanted)
        return FetchRequest(
            session_id=self.session_id,
            session_epoch=self.epoch,
            topics=[
                FetchRequest.FetchTopic(
                    **self._named(key[0]),
                    partitions=[
                        FetchRequest.FetchPartition(
                            partition=key[1], fetch_offset=offset, partition_max_bytes=1 << 20
                        )
                    ],
                )
                for key, offset in new.items()
            ],
            forgotten_topics_data=[
                FetchRequest.ForgottenTopic(**self._named(key[0]), partitions=[key[1]]) for key in gone
            ],
            **{"max_wait_ms": 0, "min_bytes": 1, **arguments},
        )

    def _named(self, topic: str | UUID) -> dict[str, Any]:
        return {"topic_id": topic} if self.by_id else {"topic": topic}

    def send(self, **arguments: Any) -> Answer:
        """Send a request that may wait. Pass the response to :meth:`take` when it is complete."""
        return self.broker.send(self.request(**arguments), self.version)

    def fetch(self, **arguments: Any) -> Any:
        """Fetch without waiting and return the response."""
        answer = self.send(**arguments)
        assert answer.count == 1, "not answered immediately"
        return self.take(answer.message)

    def take(self, response: Any) -> Any:
        self.last = []
        if response.error_code:
            self.session_id, self.epoch = 0, INITIAL
            return response
        if self.epoch == INITIAL:
            self.view.clear()
            self.session_id = response.session_id
        self.epoch = self.epoch + 1 if self.session_id else INITIAL
        for topic in response.responses:
            for data in topic.partitions:
                key = (topic.topic_id if self.by_id else topic.topic), data.partition_index
                batches = read_batches(data.records) if data.records else []
                values = tuple(bytes(record.value) for batch in batches for record in batch)
                assert key in self.wanted
                assert key not in self.last
                self.last.append(key)
                self.view[key] = PartitionState(
                    data.error_code, data.high_watermark, data.log_start_offset, values
                )
        return response
