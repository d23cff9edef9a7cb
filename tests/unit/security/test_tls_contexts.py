"""TLS contexts: their sources, messages about invalid settings, and reloading of changed files."""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path

import pytest
from model.certificates import Authority, PemFiles

from kafkacore.errors import KafkaConfigurationError
from kafkacore.security import Secret
from kafkacore.security.tls_contexts import (
    CHECK_EVERY_MS,
    TLS_VERSIONS,
    ReloadingContext,
    TlsSettings,
    client_context,
)
from kafkacore.testing.clock import VirtualClock


@pytest.fixture
def authority() -> Authority:
    return Authority()


@pytest.fixture
def files(authority: Authority, tmp_path: Path) -> PemFiles:
    return authority.issue().write(tmp_path, "server")


def test_a_client_verifies_certificate_and_host_and_speaks_tls_1_2_at_least() -> None:
    context = client_context(TlsSettings())
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert not context.hostname_checks_common_name
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.options & ssl.OP_NO_RENEGOTIATION


def test_a_client_speaks_only_the_versions_that_it_is_told() -> None:
    for configured in ("TLSv1.2", "TLSv1.3"):
        context = client_context(TlsSettings(versions=(configured,)))
        assert context.minimum_version is context.maximum_version is TLS_VERSIONS[configured]
    both = client_context(TlsSettings(versions=("TLSv1.3", "TLSv1.2")))
    assert (both.minimum_version, both.maximum_version) == (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)


def test_a_client_that_does_not_check_the_host_still_verifies_the_certificate() -> None:
    context = client_context(TlsSettings(), checks_host=False)
    assert not context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED


def test_trusted_certificates_are_a_file_or_text_and_those_alone(
    authority: Authority, tmp_path: Path
) -> None:
    for given in (authority.write(tmp_path), authority.pem.decode()):
        assert len(client_context(TlsSettings(trusted=given)).get_ca_certs()) == 1


@pytest.mark.parametrize("as_text", [False, True], ids=["files", "text"])
@pytest.mark.parametrize("password", [None, "s3cret"], ids=["open", "encrypted"])
def test_our_own_certificate_is_files_or_text_its_key_encrypted_or_not(
    authority: Authority, tmp_path: Path, as_text: bool, password: str | None
) -> None:
    own = authority.issue().write(tmp_path, "own", password)
    read = (lambda path: Path(path).read_text()) if as_text else str
    secret = None if password is None else Secret(password)
    apart = TlsSettings(certificate=read(own.certificate), key=Secret(read(own.key)), key_password=secret)
    together = TlsSettings(certificate=read(own.both), key_password=secret)
    for settings in (apart, together):
        client_context(settings)


def test_a_key_as_text_leaves_no_file_behind(files: PemFiles) -> None:
    before = set(Path(tempfile.gettempdir()).glob("kafkacore-*.pem"))
    client_context(TlsSettings(certificate=Path(files.both).read_text()))
    assert set(Path(tempfile.gettempdir()).glob("kafkacore-*.pem")) <= before


def test_what_is_wrong_is_said_in_a_sentence_without_the_secrets(files: PemFiles, tmp_path: Path) -> None:
    encrypted = Authority().issue().write(tmp_path, "encrypted", "right")
    junk = tmp_path / "junk.pem"
    junk.write_text("nothing of the kind")
    wrong = {
        "file not found": TlsSettings(trusted=str(tmp_path / "nowhere.crt")),
        "trusted certificates .*junk.pem cannot be used: must be PEM": TlsSettings(trusted=str(junk)),
        "certificate .* must be a PEM certificate with its key": TlsSettings(certificate=files.certificate),
        "the password is wrong, or the key is missing": TlsSettings(
            certificate=encrypted.both, key_password=Secret("wrong-one")
        ),
        "an encrypted key needs a password": TlsSettings(certificate=encrypted.both),
        "without its certificate": TlsSettings(key=Secret(files.key)),
        "the ciphers 'NONSENSE' cannot be used": TlsSettings(ciphers="NONSENSE"),
    }
    for sentence, settings in wrong.items():
        with pytest.raises(KafkaConfigurationError, match=sentence) as refused:
            client_context(settings)
        assert "wrong-one" not in str(refused.value)


def reloading(files: PemFiles, clock: VirtualClock) -> ReloadingContext:
    settings = TlsSettings(certificate=files.both)
    return ReloadingContext(lambda: client_context(settings), settings.files(), clock)


def test_a_file_that_has_changed_is_read_for_the_next_connection(
    authority: Authority, files: PemFiles, tmp_path: Path
) -> None:
    clock = VirtualClock()
    context = reloading(files, clock)
    first = context()
    clock.advance(CHECK_EVERY_MS)
    assert context() is first
    authority.issue("another").write(tmp_path, "server")
    assert context() is first, "the files must not be checked again so soon"
    clock.advance(CHECK_EVERY_MS)
    assert context() is not first


def test_half_a_file_is_logged_and_the_last_whole_one_goes_on(
    authority: Authority, files: PemFiles, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = VirtualClock()
    context = reloading(files, clock)
    first = context()
    Path(files.both).write_text("-----BEGIN CERT")
    clock.advance(CHECK_EVERY_MS)
    assert context() is first
    assert "failed to reload TLS files" in caplog.text
    authority.issue("another").write(tmp_path, "server")
    clock.advance(CHECK_EVERY_MS)
    assert context() is not first
