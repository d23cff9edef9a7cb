"""Security settings passed to each benchmark client; the password is on no command line and in no result."""

import json
import os
import ssl
import stat

import pytest

from kafkacore.bench import security
from kafkacore.bench.options import BenchOptions
from kafkacore.cli.bench import options_of
from kafkacore.cli.main import build_parser
from kafkacore.errors import KafkaConfigurationError

MARK = 'hunter2-"zq7\\'
SECURE = {
    "security_protocol": "SASL_SSL",
    "sasl_mechanism": "SCRAM-SHA-512",
    "sasl_plain_username": "alice",
    "sasl_plain_password": MARK,
}


@pytest.fixture
def cafile(tmp_path):
    from model.certificates import Authority

    return Authority().write(tmp_path)


def parsed(*words):
    return options_of(build_parser().parse_args(["bench", *words]))


def test_arguments_of_the_command_are_told_to_all(monkeypatch, tmp_path):
    monkeypatch.setenv("KAFKACORE_PASSWORD", MARK)
    options = parsed("--bootstrap", "b:1", "--username", "alice")
    assert options.security == SECURE
    options.check()
    shown = json.dumps(options.to_dict()) + repr(options)
    assert "hunter2" not in shown
    assert (options.to_dict()["security_protocol"], options.to_dict()["sasl_mechanism"]) == (
        "SASL_SSL",
        "SCRAM-SHA-512",
    )
    (tmp_path / "c").write_text("bootstrap.servers=file:1\nsecurity.protocol=SSL\n")
    options = parsed("--command-config", str(tmp_path / "c"))
    assert (options.bootstrap, options.security) == ("file:1", {"security_protocol": "SSL"})
    assert parsed().security == {}
    assert parsed().bootstrap is None


def test_worker_is_told_by_its_environment_in_its_clients_words(cafile):
    with security.exported(SECURE | {"ssl_cafile": cafile, "ssl_check_hostname": False}):
        assert security.settings_of("kafkacore") == security.settings_of("kafka-python")
        assert security.settings_of("kafkacore")["sasl_plain_password"] == MARK
        assert security.settings_of("confluent") == {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": cafile,
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "alice",
            "sasl.password": MARK,
            "ssl.endpoint.identification.algorithm": "none",
        }
        settings = security.settings_of("aiokafka")
        context = settings.pop("ssl_context")
        assert settings == SECURE
        assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, False)
    assert security.VARIABLE not in os.environ


def test_java_is_told_by_a_file_of_its_users_own(tmp_path, cafile):
    file = tmp_path / "client.properties"
    security.write_java_properties(SECURE | {"ssl_cafile": cafile, "ssl_certfile": cafile}, file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    from kafkacore.broker.config.properties_file import read_properties
    from kafkacore.security.java_names import security_arguments

    settings = read_properties(file)
    assert settings["ssl.keystore.key"].startswith("-----BEGIN")
    arguments = security_arguments(settings)[0]
    assert arguments["sasl_plain_password"] == MARK
    assert (arguments["ssl_cafile"], arguments["sasl_mechanism"]) == (cafile, "SCRAM-SHA-512")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"security": SECURE}, "set --bootstrap"),
        ({"security": SECURE | {"sasl_mechanism": "GSSAPI"}, "bootstrap": "b:1"}, "or use --peers none"),
        ({"security": SECURE | {"ssl_crlfile": "f"}, "bootstrap": "b:1"}, "do not support ssl_crlfile"),
        ({"security": {"ssl_cafile": "-----BEGIN"}, "bootstrap": "b:1"}, "read ssl_cafile from a file"),
    ],
)
def test_what_not_all_clients_can_do_is_refused(options, words):
    with pytest.raises(KafkaConfigurationError, match=words):
        BenchOptions(**options).check()
    if "bootstrap" in options:
        BenchOptions(**options, peers=()).check()


def test_spark_is_measured_without(monkeypatch, capsys):
    from kafkacore.cli.main import main

    assert main(["bench", "spark", "--bootstrap", "b:1", "--security-protocol", "SSL"]) == 2
    assert "bench spark supports only plaintext connections" in capsys.readouterr().err
