"""Secure connections of commands: arguments, client.properties, and passwords outside the arguments."""

import argparse
import os

import pytest

from kafkacore.cli import connection
from kafkacore.cli.connection import add_bootstrap, allow_password, client_settings, password_reference
from kafkacore.cli.main import main
from kafkacore.cli.profiles import CONFIG_VARIABLE, PROFILE_VARIABLE
from kafkacore.errors import KafkaConfigurationError
from kafkacore.security.references import ALLOWED_PATHS, ALLOWED_VARIABLES, resolved

MARK = "hunter2-zq7"


@pytest.fixture(autouse=True)
def _no_password(monkeypatch):
    """Unset the password variable, and restore it after the test in case the command sets it."""
    monkeypatch.setenv(connection.PASSWORD_VARIABLE, "")
    monkeypatch.delenv(connection.PASSWORD_VARIABLE)
    for variable in (connection.BOOTSTRAP_VARIABLE, PROFILE_VARIABLE, CONFIG_VARIABLE):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """Return a function that resolves the client settings of arguments and a file."""

    def settings(*words, file=None, password=None):
        if password is not None:
            monkeypatch.setenv(connection.PASSWORD_VARIABLE, password)
        if file is not None:
            (tmp_path / "client.properties").write_text(file)
            words = (*words, "--command-config", str(tmp_path / "client.properties"))
        return client_settings(parsed(*words))

    return settings


def parsed(*words):
    parser = argparse.ArgumentParser()
    add_bootstrap(parser)
    return parser.parse_args(words)


def test_nothing_said_is_plaintext_on_this_machine(settings):
    assert settings() == {"bootstrap_servers": "localhost:9092"}


def test_brokers_come_from_the_environment_if_nothing_names_them(settings, monkeypatch):
    monkeypatch.setenv(connection.BOOTSTRAP_VARIABLE, "env:1")
    assert settings() == {"bootstrap_servers": "env:1"}
    assert settings("-b", "b:1") == {"bootstrap_servers": "b:1"}
    assert settings(file="bootstrap.servers=file:1\n") == {"bootstrap_servers": "file:1"}


def test_user_alone_is_scram_inside_tls(settings):
    assert settings("--bootstrap", "b:1", "--username", "alice", "--cafile", "ca.pem", password=MARK) == {
        "bootstrap_servers": "b:1",
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "alice",
        "sasl_plain_password": MARK,
        "ssl_cafile": "ca.pem",
    }
    assert settings("--cafile", "ca.pem")["security_protocol"] == "SSL"
    assert settings("--security-protocol", "ssl")["security_protocol"] == "SSL"


def test_file_of_kafkas_tools_is_understood_and_arguments_win(settings, monkeypatch):
    monkeypatch.setenv(ALLOWED_VARIABLES, "KAFKA_PW")
    monkeypatch.setenv("KAFKA_PW", 'a"b')
    file = """
# as kafka-topics.sh takes it
bootstrap.servers=file:1
security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-256
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
    username="alice" password="${env:KAFKA_PW}";
ssl.truststore.type=PEM
ssl.truststore.location=/etc/ca.pem
client.id=ops
request.timeout.ms=7000
max.poll.records=5
"""
    wanted = {
        "bootstrap_servers": "file:1",
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": "alice",
        "sasl_plain_password": 'a"b',
        "ssl_cafile": "/etc/ca.pem",
        "client_id": "ops",
        "request_timeout_ms": 7000,
    }
    assert settings(file=file) == wanted
    assert settings("--bootstrap", "b:1", "--username", "bob", file=file, password=MARK) == wanted | {
        "bootstrap_servers": "b:1",
        "sasl_plain_username": "bob",
        "sasl_plain_password": MARK,
    }


def test_password_is_what_it_is_and_no_reference(settings):
    assert settings("--username", "a", password=" ${env:HOME} ")["sasl_plain_password"] == " ${env:HOME} "


def test_password_is_in_a_file_or_asked_for(settings, tmp_path, monkeypatch):
    (tmp_path / "password").write_text(MARK + "\n")
    found = settings("--username", "alice", "--password-file", str(tmp_path / "password"))
    assert found["sasl_plain_password"] == MARK
    monkeypatch.setattr(connection.os, "open", lambda *_: connection.os.dup(0))
    monkeypatch.setattr(connection.getpass, "getpass", lambda question: question + MARK)
    assert settings("--username", "alice")["sasl_plain_password"] == f"Password of alice: {MARK}"


def test_password_may_come_from_a_pipe(settings):
    """Read a pipe, as for ``--password-file <(pass show kafka)``."""
    read, write = os.pipe()
    os.write(write, MARK.encode())
    os.close(write)
    assert settings("--username", "a", "--password-file", f"/dev/fd/{read}")["sasl_plain_password"] == MARK
    os.close(read)


def test_password_of_a_job_stays_where_it_is(tmp_path, monkeypatch):
    for variable in (ALLOWED_PATHS, ALLOWED_VARIABLES):
        monkeypatch.setenv(variable, "")
    file = tmp_path / "password"
    file.write_text(MARK)
    monkeypatch.setenv(connection.PASSWORD_VARIABLE, MARK)
    for given, reference in (
        (str(file), f"${{file:{file}}}"),
        (None, "${env:KAFKACORE_PASSWORD}"),
    ):
        assert password_reference(given) == reference
        with pytest.raises(KafkaConfigurationError, match="which is not allowed"):
            resolved(reference, "kafka.sasl.password")
        allow_password("a", given)
        assert resolved(reference, "kafka.sasl.password") == MARK


@pytest.mark.parametrize(
    ("words", "file", "sentence"),
    [
        (["--username", "a", "--security-protocol", "SSL"], None, "use SASL_SSL"),
        (["--password-file", "p"], None, "needs --username"),
        (
            [],
            "ssl.truststore.location=/x.jks\n",
            "ssl.truststore.type is missing, which means JKS: set it to PEM",
        ),
        (
            [],
            f"sasl.jaas.config=evil.Module required password={MARK};\n",
            "unknown login module: use one of Plain",
        ),
        ([], f"sasl.pasword={MARK}\n", "unknown setting sasl.pasword; remove it"),
        ([], "request.timeout.ms=soon\n", "request.timeout.ms must be a whole number"),
        ([], "sasl.password=${env:KAFKACORE_NOT_SET}\n", "KAFKACORE_NOT_SET', which is not allowed"),
        ([], "client.id=${env:KAFKACORE_PASSWORD}\n", "client.id contains a reference"),
    ],
)
def test_what_cannot_be_is_a_sentence_without_a_secret(settings, words, file, sentence):
    with pytest.raises(KafkaConfigurationError) as refused:
        settings(*words, file=file, password=MARK)
    assert sentence in str(refused.value)
    assert MARK not in str(refused.value)


def test_password_without_a_terminal_says_what_to_set(monkeypatch, capsys):
    def no_terminal(*_):
        raise OSError("no terminal")

    monkeypatch.setattr(connection.os, "open", no_terminal)
    assert main(["topics", "list", "--username", "alice"]) == 2
    assert "set KAFKACORE_PASSWORD, or use --password-file FILE" in capsys.readouterr().err


def test_file_that_is_not_there_is_named(tmp_path, capsys):
    assert main(["topics", "list", "--command-config", str(tmp_path / "none")]) == 2
    assert f"{tmp_path}/none cannot be read" in capsys.readouterr().err
