"""Search for the secrets of a broker's settings in all that the broker writes or sends."""

from __future__ import annotations

import contextlib
import os
import pprint
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12
from eventually import BUDGET_S
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.admin import KafkaAdminClient as TheirAdminClient
from peers.secure_broker import SecureBroker
from peers.secure_listeners import PASSWORDS, SecureListeners
from system.integration.test_canaries import assert_without, everything_logged, living, logged, shown_of

from kafkacore import KafkaProducer
from kafkacore.admin import KafkaAdminClient, UserScramCredentialUpsertion
from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.process.server import KafkaBroker
from kafkacore.errors import AuthenticationFailedError, KafkaConfigurationError

__all__ = ["everything_logged"]
STORE_PASSWORD, KEY_PASSWORD = "store-5ecret-zq7", "key-5ecret-zq7"
#: The password of a user that is created while the broker runs, and a wrong password.
NEW_PASSWORD, WRONG_PASSWORD = "new-5ecret-zq7", "hunter2-zq7"
SECRETS = (*PASSWORDS.values(), STORE_PASSWORD, KEY_PASSWORD, NEW_PASSWORD, WRONG_PASSWORD)
PAGES = ("", "status.json", "metrics", "healthz")


class SecretListeners(SecureListeners):
    """Listeners of which three have key stores: a PKCS12 file, a PEM key and an encrypted PEM key.

    Attributes
    ----------
    lines:
        The lines of the PEM keys, without the first and the last.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        identity = self.authority.issue("broker")
        self._chain = identity.certificate_pem.decode()
        self._keys = [identity.key_pem(password).decode() for password in (None, KEY_PASSWORD)]
        self.lines = tuple(line for key in self._keys for line in key.splitlines()[1:-1])
        self._store = folder / "broker.p12"
        self._store.write_bytes(
            pkcs12.serialize_key_and_certificates(
                b"broker",
                identity.key,
                identity.certificate,
                None,
                BestAvailableEncryption(STORE_PASSWORD.encode()),
            )
        )

    def properties(self) -> dict[str, str]:
        given = super().properties()
        location = given.pop("ssl.keystore.location")
        texts = {
            f"listener.name.{listener}.ssl.keystore.{name}": text
            for listener, key in zip(("ssl", "reauth"), self._keys, strict=True)
            for name, text in (("key", key), ("certificate.chain", self._chain))
        }
        files = {
            f"listener.name.{listener}.ssl.keystore.location": location
            for listener in ("sasl_ssl", "only_scram", "short_sessions")
        }
        return (
            given
            | texts
            | files
            | {
                "listener.name.reauth.ssl.key.password": KEY_PASSWORD,
                "listener.name.mtls.ssl.keystore.type": "PKCS12",
                "listener.name.mtls.ssl.keystore.location": str(self._store),
                "listener.name.mtls.ssl.keystore.password": STORE_PASSWORD,
            }
        )


def used(secure: SecureListeners) -> Iterator[str]:
    """Use each mechanism, key store and setting as clients do, and yield all that clients see."""
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        with KafkaProducer(**secure.settings("SASL_SSL", mechanism)) as producer:
            producer.send("canaries", b"v").get(timeout=BUDGET_S)
        yield from refused(secure.settings("SASL_SSL", mechanism, password=WRONG_PASSWORD))
    for listener, mechanism in (("SSL", None), ("MTLS", None), ("REAUTH", "PLAIN")):
        with KafkaAdminClient(**secure.settings(listener, mechanism)) as admin:
            admin.list_topics()
    with KafkaAdminClient(**secure.settings("PLAINTEXT")) as admin:
        new = UserScramCredentialUpsertion("carol", "SCRAM-SHA-256", NEW_PASSWORD)
        yield repr(admin.alter_user_scram_credentials([new], raise_errors=True))
        yield repr(admin.describe_user_scram_credentials(["carol"]))
    carol = {"sasl_plain_username": "carol", "sasl_plain_password": NEW_PASSWORD}
    with KafkaAdminClient(**secure.settings("SASL_SSL", "SCRAM-SHA-256") | carol) as admin:
        admin.list_topics()
    yield from refused(
        secure.settings("SASL_SSL", "SCRAM-SHA-256") | carol | {"sasl_plain_password": WRONG_PASSWORD}
    )


def refused(settings: dict[str, Any]) -> Iterator[str]:
    with pytest.raises(AuthenticationFailedError) as failed:
        KafkaAdminClient(**settings)
    yield repr(failed.value)


def described(secure: SecureListeners) -> str:
    """Return all configuration of the broker as clients see it, and check that secrets have no value."""
    with contextlib.closing(TheirAdminClient(**secure.settings("PLAINTEXT"))) as admin:
        answer = admin.describe_configs([ConfigResource(ConfigResourceType.BROKER, "1")], config_filter="all")
    [[(_, entries)]] = [list(found.items()) for found in answer.values()]
    found = {
        name: entry for name, entry in entries.items() if name.endswith(("jaas.config", "password", ".key"))
    }
    given = {name for name in found if name.startswith("listener.name.")}
    assert {name.rpartition(".")[2] for name in given} == {"config", "key", "password"}
    assert {(entry["is_sensitive"], entry["value"]) for entry in found.values()} == {(True, None)}
    return pprint.pformat(answer)


def pages(status_url: str) -> Iterator[str]:
    for page in PAGES:
        with urllib.request.urlopen(status_url + page) as answer:
            yield answer.read().decode()


def written_in(folder: Path) -> Iterator[str]:
    """Yield the contents of files; a running broker may replace some of them meanwhile."""
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                yield Path(place, name).read_bytes().decode("latin-1")


def shown_by(process: str) -> Iterator[str]:
    """Yield arguments and environment of a process and its children, as other programs see them."""
    for name in ("cmdline", "environ"):
        yield Path(f"/proc/{process}/{name}").read_bytes().decode("latin-1")
    for task in Path(f"/proc/{process}/task").iterdir():
        # Threads and child processes may end meanwhile.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for child in (task / "children").read_text().split():
                yield from shown_by(child)


def test_no_broker_shows_the_secrets_that_it_is_given(tmp_path, everything_logged, capfd):
    """Run the broker as a process; its log is in its folder."""
    secure = SecretListeners(tmp_path)
    seen: list[str] = []
    with SecureBroker(tmp_path, secure, status_port=0) as broker:
        seen += used(secure)
        seen.append(described(secure))
        seen += pages(broker.status_url)
        seen += [*shown_of(broker), *living()]
        found = list(shown_by(str(broker.pid)))
        assert "kafkacore.broker" in found[0]
        in_files = list(written_in(tmp_path / "data"))
    assert (tmp_path / "data" / "broker.log").stat().st_size > 0
    in_files += written_in(tmp_path / "data")
    assert any("canaries" in text for text in in_files)
    assert any("carol" in text for text in in_files), "the created user is not stored"
    secrets = (*SECRETS, *secure.lines)
    assert_without(secrets, iter([*seen, *found, *in_files, *capfd.readouterr()]))
    assert_without(secrets, logged(everything_logged))


def test_no_broker_logs_the_secrets_that_it_is_given_at_any_level(tmp_path, everything_logged):
    """Run the broker in this process, to search all log records and all of its objects."""
    secure = SecretListeners(tmp_path)
    given: dict[str, Any] = secure.properties()
    given |= {f"sasl.user.{name}": password for name, password in PASSWORDS.items()}
    config = BrokerConfig.from_properties({"data_dir": tmp_path / "data", "status_port": 0, **given})
    broker = KafkaBroker(config)
    broker.start()
    try:
        seen = list(used(secure))
        assert broker.status_url is not None
        seen += pages(broker.status_url)
        seen += [*shown_of(broker), *shown_of(config), *shown_of(broker.services), *living()]
    finally:
        broker.stop()
    from_the_broker = [each for each in everything_logged.records if each.name.startswith("kafkacore.broker")]
    assert len({each.levelname for each in from_the_broker}) >= 2
    secrets = (*SECRETS, *secure.lines)
    assert_without(secrets, iter(seen))
    assert_without(secrets, logged(everything_logged))


@pytest.mark.parametrize(
    "wrong",
    [
        {"listener.name.mtls.ssl.keystore.password": WRONG_PASSWORD},
        {"listener.name.reauth.ssl.key.password": WRONG_PASSWORD},
        {"listener.name.ssl.ssl.keystore.key": f"-----BEGIN PRIVATE KEY-----{WRONG_PASSWORD}"},
        {"listener.name.sasl_ssl.plain.sasl.jaas.config": f'PlainLoginModule user_a="{WRONG_PASSWORD}"'},
        {"listener.name.sasl_ssl.plain.sasl.jaas.config": WRONG_PASSWORD},
        {"listener.name.mtls.ssl.keystore.pasword": WRONG_PASSWORD},
    ],
    ids=str,
)
def test_no_refusal_of_a_setting_shows_the_secrets(tmp_path, wrong, everything_logged):
    secure = SecretListeners(tmp_path)
    given: dict[str, Any] = secure.properties() | wrong
    with pytest.raises(KafkaConfigurationError) as failed:
        KafkaBroker(BrokerConfig.from_properties({"data_dir": tmp_path / "data", **given})).start()
    assert_without((*SECRETS, *secure.lines), iter([repr(failed.value), *living()]))
    assert_without((*SECRETS, *secure.lines), logged(everything_logged))
