"""The broker's self-signed certificate: names, lifetime and file permissions."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from cryptography import x509

from kafkacore.broker.listeners.own_certificate import authority_path, own_certificate
from kafkacore.errors import KafkaConfigurationError
from kafkacore.testing import VirtualClock

DAY_MS = 86_400_000


def names(store: Path) -> set[str]:
    certificate = x509.load_pem_x509_certificates(store.read_bytes())[0]
    return {
        str(each.value)
        for each in certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    }


def test_certificate_is_for_this_machine_and_for_what_clients_are_told(tmp_path: Path) -> None:
    store = own_certificate(tmp_path, ["kafka.example", "10.0.0.1"], VirtualClock())
    assert names(store) == {"localhost", "127.0.0.1", "::1", "kafka.example", "10.0.0.1"}
    trusting = ssl.create_default_context(cafile=str(authority_path(tmp_path)))
    assert len(trusting.get_ca_certs()) == 1
    assert store.stat().st_mode & 0o777 == 0o600
    assert store.parent.stat().st_mode & 0o777 == 0o700
    assert "PRIVATE KEY" not in authority_path(tmp_path).read_text()


def test_certificate_stays_until_it_is_too_old_or_for_too_few_names(tmp_path: Path) -> None:
    clock = VirtualClock()
    first = own_certificate(tmp_path, ["a.example"], clock).read_bytes()
    assert own_certificate(tmp_path, ["a.example"], clock).read_bytes() == first
    assert own_certificate(tmp_path, [], clock).read_bytes() == first
    other = own_certificate(tmp_path, ["b.example"], clock).read_bytes()
    assert other != first
    clock.advance(340 * DAY_MS)
    assert own_certificate(tmp_path, ["b.example"], clock).read_bytes() != other


def test_half_a_certificate_of_a_broken_start_is_made_anew(tmp_path: Path) -> None:
    store = own_certificate(tmp_path, [], VirtualClock())
    authority_path(tmp_path).unlink()
    before = store.read_bytes()
    assert own_certificate(tmp_path, [], VirtualClock()).read_bytes() != before
    assert authority_path(tmp_path).exists()


def test_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cryptography", None)
    with pytest.raises(Exception, match=r"kafkacore\[certificates\]"):
        own_certificate(tmp_path, [], VirtualClock())


@pytest.mark.parametrize("name", ["tls", "tls/server.pem", "tls/ca.pem"])
def test_certificate_is_not_kept_behind_a_link(tmp_path: Path, name: str) -> None:
    target = tmp_path / "target"
    if name == "tls":
        target.mkdir()
    else:
        (tmp_path / "tls").mkdir()
    (tmp_path / name).symlink_to(target)
    with pytest.raises(KafkaConfigurationError, match=f"{name} is a symbolic link"):
        own_certificate(tmp_path, [], VirtualClock())
    assert not target.is_file()
