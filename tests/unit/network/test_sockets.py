from __future__ import annotations

import pytest

from kafkacore.network._sockets import lookup_name


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "b-1.kafka_x.example.com.", "::1", "fe80::1%eth0", "a" * 63 + ".test"]
)
def test_plain_host_is_looked_up_as_bytes(host: str) -> None:
    assert lookup_name(host) == host.encode()


@pytest.mark.parametrize("host", ["", ".", "a..b", "a\0b", "bücher.example", "a" * 64, "a b", "a\n"])
def test_other_host_is_left_to_the_codec_of_idna(host: str) -> None:
    assert lookup_name(host) == host
