"""A link of 100 ms and 3 Mbit/s to Apache Kafka delays records but loses none.

No record expires, nothing is sent twice, and waiting records stay within ``buffer_memory``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from model.dose import dose, note
from model.sending_process import send_in_a_process, value_of
from peers.java_peer import JavaPeer
from peers.proxied_kafka import kafka_behind_proxy

from kafkacore.testing import FaultProxy

ONE_WAY_MS = 50.0
BYTES_PER_S = 375_000.0
SIZE = 100
PARTITIONS = 4
PRODUCE = 0
#: 1.5 times the size of a record: enough for its framing, but not for sending it twice.
MOST_BYTES_PER_RECORD = SIZE * 1.5
ALLOWED_GROWTH = 32 << 20

#: Number of records, and the producer's settings. Uncompressed, 100,000 records take about 30 s on this link.
RUNS = {
    "plain": (dose(10_000, 100_000), {"compression_type": None}),
    "plain, short of memory": (dose(10_000, 100_000), {"compression_type": None, "buffer_memory": 1 << 20}),
    "compressed": (100_000, {"compression_type": "lz4"}),
}


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultProxy]:
    with kafka_behind_proxy(tmp_path_factory.mktemp("apache-kafka")) as proxy:
        yield proxy


@pytest.mark.behaviour(
    "Reliability",
    "on a slow link, no record expires or is sent twice, and memory stays close to `buffer_memory`",
)
@pytest.mark.timeout(dose(120, 300))
@pytest.mark.parametrize("how", RUNS)
def test_slow_link_expires_nothing_sends_nothing_twice_and_holds_no_more_than_its_memory(
    proxy: FaultProxy, java_peer: JavaPeer, how: str
) -> None:
    records, options = RUNS[how]
    topic = f"slow-{how.replace(', ', '-').replace(' ', '-')}"
    java_peer.create_topic(proxy.bootstrap_servers, topic, PARTITIONS)
    connections, seen = proxy.counters.connections, len(proxy.requests)
    proxy.set_delay(ONE_WAY_MS)
    proxy.set_rate(BYTES_PER_S)
    try:
        sent = send_in_a_process(
            proxy.bootstrap_servers, topic, records, SIZE, PARTITIONS, linger_ms=5, **options
        )
    finally:
        proxy.lift()
    produced = sum(each.request_bytes for each in proxy.requests[seen:] if each.api_key == PRODUCE)
    note(
        f"{records} records of {SIZE} bytes over 100 ms and 3 Mbit/s, {how}",
        acknowledged=sent.acknowledged,
        failed=sent.failed,
        seconds=f"{sent.elapsed_s:.1f}",
        grown_MiB=f"{sent.grown / (1 << 20):.1f}",
        on_the_wire_MiB=f"{produced / (1 << 20):.1f}",
    )
    assert (sent.acknowledged, sent.failed, sent.error) == (records, 0, None)
    assert sent.grown <= options.get("buffer_memory", 32 << 20) + ALLOWED_GROWTH
    assert produced <= records * MOST_BYTES_PER_RECORD
    # The producer has not reconnected.
    assert proxy.counters.connections - connections == 1
    read = Counter(each.value for each in java_peer.consume(proxy.bootstrap_servers, topic, None))
    assert read.total() == records + 1
    assert set(read) == {value_of(number, SIZE) for number in [*range(records), 99_999_999]}
