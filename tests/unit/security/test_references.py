"""References to secrets in settings: which settings may contain one, and what it may name."""

import os

import pytest

from kafkacore.broker.config.listener_keys import LISTENER_KEYS
from kafkacore.errors import KafkaConfigurationError
from kafkacore.security.references import (
    ALLOWED_PATHS,
    ALLOWED_VARIABLES,
    MAX_FILE_BYTES,
    allow,
    holds_secret,
    resolved,
)
from kafkacore.security.settings import SECURITY_SETTINGS
from kafkacore.spark.typed.options import SIDE_OPTIONS

MARK = "hunter2-zq7"
PASSWORD = "kafka.sasl.password"


@pytest.fixture(autouse=True)
def _nothing_is_allowed(monkeypatch):
    for variable in (ALLOWED_PATHS, ALLOWED_VARIABLES):
        monkeypatch.setenv(variable, "")
        monkeypatch.delenv(variable)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return an allowed folder next to a file with a secret that is not allowed."""
    (tmp_path / "allowed").mkdir()
    (tmp_path / "outside").write_text(MARK)
    monkeypatch.setenv(ALLOWED_PATHS, f"/nowhere, {tmp_path}/allowed,")
    return tmp_path / "allowed"


def refusal(text, name=PASSWORD):
    with pytest.raises(KafkaConfigurationError) as refused:
        resolved(text, name)
    assert MARK not in str(refused.value)
    return str(refused.value)


def test_references_are_replaced_by_what_they_name(folder, monkeypatch):
    monkeypatch.setenv("PIPE_PASSWORD", "a${env:HOME}b")
    monkeypatch.setenv(ALLOWED_VARIABLES, "OTHER,PIPE_PASSWORD")
    (folder / "key").write_text("line one\nline two\n\n")
    text = f'user="u" password="${{env:PIPE_PASSWORD}}" key="${{file:{folder}/key}}"; $HOME ${{HOME}}'
    assert resolved(text, "sasl.jaas.config") == (
        'user="u" password="a${env:HOME}b" key="line one\nline two"; $HOME ${HOME}'
    )


def test_nothing_is_allowed_by_default(tmp_path, monkeypatch):
    monkeypatch.setenv("PIPE_PASSWORD", MARK)
    (tmp_path / "key").write_text(MARK)
    said = refusal("${env:PIPE_PASSWORD}")
    assert "kafka.sasl.password refers to the environment variable 'PIPE_PASSWORD'" in said
    assert "must add its name to the environment variable KAFKACORE_SECRETS_VARIABLES of this process" in said
    said = refusal(f"${{file:{tmp_path}/key}}")
    assert f"refers to the file '{tmp_path}/key', which is not allowed" in said
    assert "the file or its folder to the environment variable KAFKACORE_SECRETS_PATHS" in said


def test_message_is_the_same_whether_the_file_exists(folder):
    present, absent = (refusal(f"${{file:{folder.parent}/{name}}}") for name in ("outside", "absent"))
    assert present == absent.replace("absent", "outside")


@pytest.mark.parametrize(
    "place",
    [
        "{folder}/../outside",
        "{folder}/link",
        "{folder}/folder/outside",
        "{folder}-beside",
        "{folder}",
        "/proc/self/environ",
        "{folder}/../outside\0",
        "",
    ],
)
def test_no_path_leads_out_of_an_allowed_folder(folder, place):
    (folder / "link").symlink_to(folder.parent / "outside")
    (folder / "folder").symlink_to(folder.parent)
    (folder.parent / "allowed-beside").write_text(MARK)
    said = refusal(f"${{file:{place.format(folder=folder)}}}")
    assert "which is not allowed" in said or "Is a directory" in said


def test_links_inside_an_allowed_folder_are_followed(folder):
    """Kubernetes mounts a secret as a link to a file in a folder that it replaces."""
    (folder / "..2026").mkdir()
    (folder / "..2026" / "password").write_text(MARK)
    (folder / "..data").symlink_to("..2026")
    (folder / "password").symlink_to("..data/password")
    assert resolved(f"${{file:{folder}/password}}", PASSWORD) == MARK


def test_allowed_path_may_be_a_file_or_a_link(tmp_path, monkeypatch):
    (tmp_path / "real").write_text(MARK)
    (tmp_path / "link").symlink_to("real")
    monkeypatch.setenv(ALLOWED_PATHS, f"{tmp_path}/link")
    assert resolved(f"${{file:{tmp_path}/link}}", PASSWORD) == MARK
    assert resolved(f"${{file:{tmp_path}/real}}", PASSWORD) == MARK


def test_relative_allowed_path_is_refused(monkeypatch):
    monkeypatch.setenv(ALLOWED_PATHS, "secrets")
    assert "KAFKACORE_SECRETS_PATHS contains 'secrets': write absolute paths" in refusal("${file:secrets/a}")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            f"{MARK}${{env:KAFKACORE_NOT_SET}}",
            "environment variable 'KAFKACORE_NOT_SET', which is not set: set",
        ),
        (f"{MARK}${{file:FOLDER/at/all}}", "FOLDER/at/all', which cannot be read: No such file or directory"),
        (f"{MARK}${{vault:a/b}}", "an unknown kind: use ${env:NAME} or ${file:PATH}"),
    ],
)
def test_reference_to_nothing_is_a_sentence_without_the_value(folder, monkeypatch, text, words):
    monkeypatch.setenv(ALLOWED_VARIABLES, "KAFKACORE_NOT_SET")
    assert words.replace("FOLDER", str(folder)) in refusal(text.replace("FOLDER", str(folder)))


@pytest.mark.parametrize("held", [b"x" * (MAX_FILE_BYTES + 1), b"\xff\xfe"])
def test_file_that_cannot_be_a_secret_is_refused(folder, held):
    (folder / "file").write_bytes(held)
    assert "which must be text in UTF-8 of at most 65536 bytes" in refusal(f"${{file:{folder}/file}}")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("kafka.sasl.jaas.config", True),
        ("KAFKA.SASL.PASSWORD", True),
        ("ssl.key.password", True),
        ("sasl_oauthbearer_client_credentials_client_secret", True),
        ("value.schema.registry.auth", True),
        ("storage.AWS_SECRET_ACCESS_KEY", True),
        ("storage.client_kwargs.headers.Authorization", True),
        ("kafka.client.id", False),
        ("kafka.bootstrap.servers", False),
        ("kafka.client.rack", False),
        ("kafka.group.id", False),
        ("kafka.sasl.username", False),
        ("kafka.sasl.oauthbearer.token.endpoint.url", False),
        ("schema.registry.url", False),
        ("storage.endpoint_url", False),
        ("storage.secrets.endpoint_url", False),
    ],
)
def test_reference_needs_an_option_that_holds_a_secret(monkeypatch, name, expected):
    monkeypatch.setenv("PIPE", MARK)
    monkeypatch.setenv(ALLOWED_VARIABLES, "PIPE")
    assert holds_secret(name) is expected
    if expected:
        assert resolved("${env:PIPE}", name) == MARK
    else:
        said = refusal("${env:PIPE}", name)
        assert said.startswith(f"{name} contains a reference")
        assert said.endswith("only in options that hold a secret: write the value itself")


def test_every_setting_that_is_a_secret_may_contain_a_reference():
    """Include names of listeners and Spark, which :mod:`kafkacore.security` cannot import."""
    rows = {**SECURITY_SETTINGS, **LISTENER_KEYS, **SIDE_OPTIONS}
    secret = {name for name, row in rows.items() if row.is_secret}
    # Certificates are public, although Kafka gives these properties the type PASSWORD.
    public = {"ssl.keystore.certificate.chain", "ssl.truststore.certificates"}
    assert {name for name in secret if not holds_secret(name)} == public


def test_allowing_one_more_keeps_what_was_allowed(monkeypatch):
    monkeypatch.setenv(ALLOWED_VARIABLES, "A")
    for _ in range(2):
        allow(ALLOWED_VARIABLES, "B")
    assert os.environ[ALLOWED_VARIABLES] == "A,B"
