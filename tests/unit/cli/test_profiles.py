"""Profiles: settings of a cluster by name, suggestions for misspelt names, and no secret in any message."""

import argparse

import pytest

from kafkacore.cli import connection
from kafkacore.cli.connection import add_bootstrap, client_settings
from kafkacore.cli.main import main
from kafkacore.cli.profiles import CONFIG_VARIABLE, PROFILE_VARIABLE, profiles_path
from kafkacore.errors import KafkaConfigurationError
from kafkacore.security.references import ALLOWED_VARIABLES

MARK = "hunter2-zq7"
FILE = f"""
[local]
bootstrap_servers = "localhost:9092"
[prod]
bootstrap_servers = ["b1:9093", "b2:9093"]
security_protocol = "SASL_SSL"
sasl_mechanism = "SCRAM-SHA-512"
sasl_plain_username = "alice"
sasl_plain_password = "{MARK}"
ssl_cafile = "/etc/ca.pem"
ssl_check_hostname = false
request_timeout_ms = 7000
"""


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch):
    for variable in (connection.BOOTSTRAP_VARIABLE, connection.PASSWORD_VARIABLE, PROFILE_VARIABLE):
        monkeypatch.setenv(variable, "")
        monkeypatch.delenv(variable)


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """Return a function that resolves the client settings of arguments and a file of profiles."""
    path = tmp_path / "profiles.toml"
    monkeypatch.setenv(CONFIG_VARIABLE, str(path))

    def settings(*words, file=FILE, mode=0o600):
        if file is not None:
            path.write_text(file)
            path.chmod(mode)
        parser = argparse.ArgumentParser()
        add_bootstrap(parser)
        return client_settings(parser.parse_args(words))

    return settings


PROD = {
    "bootstrap_servers": "b1:9093,b2:9093",
    "security_protocol": "SASL_SSL",
    "sasl_mechanism": "SCRAM-SHA-512",
    "sasl_plain_username": "alice",
    "sasl_plain_password": MARK,
    "ssl_cafile": "/etc/ca.pem",
    "ssl_check_hostname": False,
    "request_timeout_ms": 7000,
}


def test_profile_has_the_settings_of_its_section(settings, capsys):
    assert settings("--profile", "prod") == PROD
    assert settings("--profile", "local") == {"bootstrap_servers": "localhost:9092"}
    assert capsys.readouterr().err == ""


def test_arguments_override_a_profile_that_overrides_the_environment(settings, monkeypatch):
    monkeypatch.setenv(connection.BOOTSTRAP_VARIABLE, "env:1")
    monkeypatch.setenv(PROFILE_VARIABLE, "prod")
    assert settings() == PROD
    assert settings("--profile", "local") == {"bootstrap_servers": "localhost:9092"}
    monkeypatch.setenv(connection.PASSWORD_VARIABLE, "other")
    assert settings("-b", "b:1", "--username", "bob", "--cafile", "x.pem") == PROD | {
        "bootstrap_servers": "b:1",
        "sasl_plain_username": "bob",
        "sasl_plain_password": "other",
        "ssl_cafile": "x.pem",
    }


def test_password_may_be_outside_of_the_file(settings, tmp_path, monkeypatch):
    without = FILE.replace("sasl_plain_password", "# ")
    monkeypatch.setenv(connection.PASSWORD_VARIABLE, "from-environment")
    assert settings("--profile", "prod", file=without)["sasl_plain_password"] == "from-environment"
    (tmp_path / "password").write_text("from-file\n")
    words = ("--profile", "prod", "--password-file", str(tmp_path / "password"))
    assert settings(*words)["sasl_plain_password"] == "from-file"
    monkeypatch.setenv("KAFKA_PW", "from-reference")
    monkeypatch.setenv(ALLOWED_VARIABLES, "KAFKA_PW")
    referring = FILE.replace(MARK, "${env:KAFKA_PW}")
    assert settings("--profile", "prod", file=referring)["sasl_plain_password"] == "from-reference"


@pytest.mark.parametrize(
    ("file", "mode", "warns"),
    [
        (FILE, 0o644, True),
        (FILE, 0o640, True),
        (FILE, 0o600, False),
        (FILE.replace("sasl_plain_password", "#"), 0o644, False),
        (FILE.replace(MARK, "${env:KAFKA_PW}"), 0o644, False),
        ('[local]\nssl_keyfile = "/etc/key.pem"\n', 0o644, False),
        ('[local]\nssl_password = "x"\n', 0o644, True),
    ],
)
def test_password_that_others_can_read_is_a_warning(settings, capsys, file, mode, warns):
    settings("--profile", "local", file=file, mode=mode)
    said = capsys.readouterr().err
    assert said.startswith("kafkacore: warning: ") is warns
    assert ("run chmod 600 " in said) is warns
    assert MARK not in said


@pytest.mark.parametrize(
    ("words", "file", "sentence"),
    [
        (["prdo"], FILE, "has no profile 'prdo': did you mean 'prod'?"),
        (["xyzzy"], FILE, "has no profile 'xyzzy': its profiles are local, prod"),
        (["p"], f'p = "{MARK}"', "has no profile 'p': its profiles are none"),
        (["p"], None, "profile 'p' does not exist, because the file /"),
        (["p"], f'[p]\nsasl_plain_pasword = "{MARK}"', "did you mean sasl_plain_password?"),
        (["p"], f'[p]\ngroup_id = "{MARK}"', "profile 'p' has an unknown setting 'group_id'"),
        (["p"], f'[p]\nclient_id = {{a = "{MARK}"}}', "client_id must be a string, a number, a boolean"),
        (["p"], f'[p]\nrequest_timeout_ms = "{MARK}"', "request.timeout.ms must be a whole number"),
        (["p"], f'[p]\nsasl_plain_password = "{MARK}', "is not valid TOML: error at end of document"),
        (["p", "--command-config", "f"], "[p]", "give either --profile or --command-config"),
    ],
)
def test_profile_that_cannot_be_used_is_a_sentence_without_a_secret(settings, words, file, sentence):
    with pytest.raises(KafkaConfigurationError) as refused:
        settings("--profile", *words, file=file)
    assert sentence in str(refused.value)
    assert MARK not in str(refused.value)


def test_file_is_in_the_folder_of_configurations(monkeypatch, tmp_path):
    monkeypatch.delenv(CONFIG_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert profiles_path() == tmp_path / "kafkacore" / "profiles.toml"
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert profiles_path() == tmp_path / ".config" / "kafkacore" / "profiles.toml"


def test_misspelt_profile_ends_a_command_with_2(settings, capsys):
    assert settings("--profile", "local")
    assert main(["topics", "list", "--profile", "locl"]) == 2
    assert "did you mean 'local'?" in capsys.readouterr().err
