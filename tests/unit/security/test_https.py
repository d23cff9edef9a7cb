"""HTTPS requests: the allowed URLs, and the checks of responses."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from eventually import BUDGET_MS
from security.identity_provider import IdentityProvider, identity_provider

from kafkacore.errors import KafkaConfigurationError
from kafkacore.security import https
from kafkacore.security.https import (
    ALLOWED_URLS,
    MAX_BODY_BYTES,
    HttpsError,
    HttpsOptions,
    HttpsUnavailableError,
    checked_url,
    refuse_address,
)
from kafkacore.testing import VirtualClock

fetch = partial(https.fetch, clock=VirtualClock())
#: Options with timeouts that a server's thread does not miss, even if the process is stopped for a while.
patient = partial(HttpsOptions, connect_timeout_ms=BUDGET_MS, read_timeout_ms=BUDGET_MS)
ALLOWED = "https://idp.example/oauth/token"
#: URLs that an attacker might try who can write a configuration but not the process's environment.
FORGED = [
    "file:///etc/passwd",
    "FILE:///etc/passwd",
    "file:/etc/passwd",
    "http://idp.example/oauth/token",
    "ftp://idp.example/oauth/token",
    "gopher://idp.example/_x",
    "jar:file:///x.jar!/",
    "data:text/plain,x",
    "//idp.example/oauth/token",
    "idp.example/oauth/token",
    "",
    "https://",
    "https:///oauth/token",
    "https://169.254.169.254/latest/meta-data/",
    "https://[fd00:ec2::254]/latest/",
    "https://2852039166/",
    "https://0xA9FEA9FE/",
    "https://127.0.0.1:8080/",
    "https://[::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://localhost/",
    "https://idp.example@evil.example/oauth/token",
    "https://evil.example#@idp.example/oauth/token",
    "https://evil.example\\@idp.example/oauth/token",
    "https://idp.example.evil.example/oauth/token",
    "https://idp.example:444/oauth/token",
    "https://idp.example:0/oauth/token",
    "https://idp.example:99999/oauth/token",
    "https://idp.example./oauth/token",
    "https://IDP.example/oauth/token",
    "https://idp.example/oauth/token/",
    "https://idp.example/oauth/token?x=1",
    "https://idp.example/oauth/../admin",
    "https://idp.example/oauth%2ftoken",
    "https://idp.example/oauth/token\r\nHost: evil.example",
    "https://idp.example/oauth/token\x00",
    " https://idp.example/oauth/token",
    "https://user:secret@idp.example/oauth/token",
    "https://idp\u3002example/oauth/token",
    "https://[idp.example/",
]


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[IdentityProvider]:
    with identity_provider(tmp_path) as one:
        yield one


@pytest.mark.parametrize("url", FORGED)
def test_address_that_is_not_allowed_letter_by_letter_is_refused(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ALLOWED_URLS, f"https://other.example/keys, {ALLOWED}")
    assert checked_url(ALLOWED, "setting") == ALLOWED
    with pytest.raises(KafkaConfigurationError, match=r"^setting="):
        checked_url(url, "setting")


def test_nothing_is_allowed_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ALLOWED_URLS, raising=False)
    with pytest.raises(KafkaConfigurationError, match=f"add it to the environment variable {ALLOWED_URLS}"):
        checked_url(ALLOWED, "setting")


def test_cve_2025_27817_token_address_reads_no_file_even_if_it_is_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(ALLOWED_URLS, "file:///etc/passwd,http://idp.example/")
    for url in ("file:///etc/passwd", "http://idp.example/"):
        with pytest.raises(KafkaConfigurationError, match="must begin with https://"):
            checked_url(url, "setting")


@pytest.mark.parametrize(
    "url",
    [
        "https://user:secret@idp.example/",
        "https://idp.example/#fragment",
        "https://idp.example:0/",
        "https://idp.example/a b",
        "https://",
    ],
)
def test_address_that_is_allowed_and_makes_no_sense_is_refused(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ALLOWED_URLS, url)
    with pytest.raises(
        KafkaConfigurationError, match=r"^setting=.*: it must (not )?contain|: it must be ASCII"
    ):
        checked_url(url, "setting")


def test_operators_file_is_allowed_where_files_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ALLOWED_URLS, "file:///etc/keys.json,file://host/keys.json")
    assert checked_url("file:///etc/keys.json", "setting", ("https", "file"))
    with pytest.raises(KafkaConfigurationError, match="file:///folder/name"):
        checked_url("file://host/keys.json", "setting", ("https", "file"))


def test_document_of_a_trusted_server_is_fetched(provider: IdentityProvider) -> None:
    provider.will_answer(b"hello")
    assert fetch(provider.address + "/a?b=c", patient(cafile=provider.cafile)) == b"hello"
    assert [(asked.method, asked.path) for asked in provider.asked] == [("GET", "/a?b=c")]


def test_redirect_is_not_followed(provider: IdentityProvider) -> None:
    provider.will_answer(b"", 302, Location=provider.address + "/elsewhere")
    with pytest.raises(HttpsError, match="302, a redirect, which is not followed") as caught:
        fetch(provider.address + "/a", patient(cafile=provider.cafile))
    assert not caught.value.retriable
    assert [asked.path for asked in provider.asked] == ["/a"]


@pytest.mark.parametrize(
    ("status", "may_pass"), [(401, False), (404, False), (429, True), (500, True), (503, True)]
)
def test_refusal_says_whether_to_ask_again(provider: IdentityProvider, status: int, may_pass: bool) -> None:
    provider.will_answer({"error": "no\nway"}, status)
    with pytest.raises(HttpsError, match=rf"answered {status}: .*no\\\\nway") as caught:
        fetch(provider.address, patient(cafile=provider.cafile))
    assert caught.value.retriable is may_pass


def test_answer_without_an_end_is_not_read_on(provider: IdentityProvider) -> None:
    provider.will_answer(b"x" * (MAX_BODY_BYTES + 1))
    with pytest.raises(HttpsError, match=f"more than {MAX_BODY_BYTES} bytes"):
        fetch(provider.address, patient(cafile=provider.cafile))


def test_server_whose_certificate_nobody_trusts_hears_nothing(provider: IdentityProvider) -> None:
    provider.will_answer(b"hello")
    with pytest.raises(HttpsUnavailableError, match="CERTIFICATE_VERIFY_FAILED"):
        fetch(provider.address, patient(), body="secret")
    assert provider.asked == []


def test_server_with_a_certificate_of_another_name_hears_nothing(tmp_path: Path) -> None:
    with identity_provider(tmp_path, ("idp.example",)) as provider:
        with pytest.raises(HttpsUnavailableError, match="not valid for 'localhost'"):
            fetch(provider.address, patient(cafile=provider.cafile), body="secret")
        assert provider.asked == []


def test_server_that_says_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(HttpsUnavailableError, match="timed out"):
            fetch(url, HttpsOptions(connect_timeout_ms=50.0))


class Hasty(VirtualClock):
    """A clock that advances by one of the timeouts at each reading."""

    def monotonic_ms(self) -> float:
        self.advance(BUDGET_MS)
        return super().monotonic_ms()


def test_answer_that_drips_is_given_up(provider: IdentityProvider) -> None:
    provider.will_answer(b"hello")
    with pytest.raises(HttpsUnavailableError, match="was not complete in time"):
        fetch(provider.address, patient(cafile=provider.cafile), clock=Hasty())


def test_name_that_leads_to_this_machine_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with identity_provider(tmp_path, ("idp.example",)) as provider:
        provider.will_answer(b"hello")
        port = int(provider.address.rpartition(":")[2])
        here = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **options: here)
        with pytest.raises(HttpsUnavailableError, match="of this machine, which is allowed only"):
            fetch(f"https://idp.example:{port}/", patient(cafile=provider.cafile))
        assert provider.asked == []


def test_file_without_certificates_is_a_wrong_setting(tmp_path: Path) -> None:
    with pytest.raises(KafkaConfigurationError, match=r"cannot read certificates from .*none\.pem"):
        fetch("https://localhost:1/", HttpsOptions(cafile=str(tmp_path / "none.pem")))


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "fe80::1%eth0",
        "0.0.0.0",
        "::",
        "224.0.0.1",
        "::ffff:169.254.169.254",
        "127.0.0.1",
        "::1",
    ],
)
def test_allowed_name_with_a_forbidden_address_is_not_asked(address: str) -> None:
    with pytest.raises(OSError, match=r"not allowed|allowed only"):
        refuse_address("idp.example", address)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("localhost", "127.0.0.1"),
        ("127.0.0.1", "127.0.0.1"),
        ("idp.internal", "10.1.2.3"),
        ("idp.example", "93.184.215.14"),
    ],
)
def test_provider_in_a_private_network_or_named_as_local_is_asked(host: str, address: str) -> None:
    refuse_address(host, address)
