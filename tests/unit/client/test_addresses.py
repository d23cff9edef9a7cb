"""Parsing of bootstrap servers and host names."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from kafkacore.client.addresses import is_same_endpoint, parse_bootstrap_servers, resolve_host
from kafkacore.errors import KafkaConfigurationError
from kafkacore.structs import Node


@pytest.mark.parametrize(
    ("servers", "expected"),
    [
        ("localhost", [("localhost", 9092)]),
        ("a:1,b:2", [("a", 1), ("b", 2)]),
        (" a:1 , b ", [("a", 1), ("b", 9092)]),
        (["a:1", "b"], [("a", 1), ("b", 9092)]),
        (("a:1", "a:1"), [("a", 1)]),
        ("[::1]:9093", [("::1", 9093)]),
        ("[::1]", [("::1", 9092)]),
        ("fe80::1", [("fe80::1", 9092)]),
        ("a:1,", [("a", 1)]),
        ({"b:2", "a:1"}, [("a", 1), ("b", 2)]),
        (frozenset(["a"]), [("a", 9092)]),
        ("PLAINTEXT://a:1,SSL://b", [("a", 1), ("b", 9092)]),
        (["sasl_ssl://[::1]:9093"], [("::1", 9093)]),
    ],
)
def test_bootstrap_servers_are_read_as_kafka_python_reads_them(servers: Any, expected: Any) -> None:
    assert parse_bootstrap_servers(servers) == expected


@pytest.mark.parametrize(
    "servers",
    [
        "",
        [],
        None,
        9092,
        ["a", 7],
        ":9092",
        "a:0",
        "a:65536",
        "a:x",
        "a:-1",
        "[::1",
        "a:b:c",
        "http://a:1",
        "a b:1",
        "a\0:1",
        "INTERNAL://a:1",
        "PLAINTEXT://",
        "PLAINTEXT://SSL://a:1",
        {b"a:1"},
    ],
)
def test_a_wrong_bootstrap_server_is_refused_with_what_to_change(servers: Any) -> None:
    with pytest.raises(KafkaConfigurationError, match="bootstrap_servers"):
        parse_bootstrap_servers(servers)


def test_protocol_of_a_server_must_be_the_security_protocol() -> None:
    assert parse_bootstrap_servers("SSL://a:1", "SSL") == [("a", 1)]
    with pytest.raises(
        KafkaConfigurationError,
        match=r"'SSL://a:1': it contradicts security_protocol='PLAINTEXT'; set security_protocol='SSL', or "
        "remove 'SSL://'",
    ):
        parse_bootstrap_servers("SSL://a:1", "PLAINTEXT")


def test_all_addresses_of_a_name_are_found_once_and_by_family(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ["10.0.0.1", "::1", "10.0.0.2", "10.0.0.1"]
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda host, port, **_: [(0, 0, 0, "", (each, port)) for each in found]
    )
    assert resolve_host("kafka", 9092) == ["10.0.0.1", "10.0.0.2", "::1"]


@pytest.mark.parametrize("host", ["a..b", "x" * 300, "a\0b", "no.such.name.invalid"])
def test_what_is_no_name_is_an_error_of_the_network(host: str) -> None:
    with pytest.raises(OSError, match=r".+"):
        resolve_host(host, 9092)


def test_an_endpoint_is_the_same_by_host_or_address_and_by_port() -> None:
    node = Node(1, "10.0.0.1", 9092)
    assert is_same_endpoint(node, Node(-1, "10.0.0.1", 9092), None)
    assert is_same_endpoint(node, Node(-1, "kafka", 9092), "10.0.0.1")
    assert not is_same_endpoint(node, Node(-1, "kafka", 9093), "10.0.0.1")
    assert not is_same_endpoint(node, Node(-1, "kafka", 9092), "10.0.0.2")
