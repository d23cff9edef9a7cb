"""Our partitioner gives the partitions of Kafka's producer; otherwise the records of a key would be split."""

from __future__ import annotations

import random

from peers.java_peer import JavaPeer

from kafkacore.producer._murmur2 import murmur2


def test_partition_of_a_key_is_javas(java_peer: JavaPeer) -> None:
    chance = random.Random(20_260_101)
    keys = [chance.randbytes(size) for size in range(65) for _ in range(40)]
    keys += [b"%d" % number for number in range(2_000)] + ["ключ-鍵-🔑".encode(), b"\xff" * 1000, bytes(1000)]
    for count in (1, 2, 6, 100, 1_000_003):
        ours = [(murmur2(key) & 0x7FFFFFFF) % count for key in keys]
        assert ours == java_peer.partitions_for_keys(keys, count)
