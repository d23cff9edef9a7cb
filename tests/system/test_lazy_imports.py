"""Modules that a program loads only if it uses what they are for.

Each case runs in a new process, because this one has loaded most modules. The limits are lists of modules and
not times, which would depend on the machine.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

#: Modules that take long to import and that no plaintext client uses.
UNUSED = (
    "asyncio", "concurrent.futures", "dataclasses", "email", "http", "inspect", "importlib.metadata",
    "copy", "cramjam", "encodings.idna", "json", "logging", "lz4", "pathlib", "pkgutil", "ssl", "tempfile",
    "urllib", "uuid", "zipfile", "zstandard",
    "kafkacore.client.proxy", "kafkacore.network._tls", "kafkacore.producer.transaction_manager",
    "kafkacore.security.client_authenticator", "kafkacore.security.https", "kafkacore.security.proxy_url",
    "kafkacore.security.sasl", "kafkacore.security.tls_contexts",
)  # fmt: skip
_ARGUMENTS = "bootstrap_servers='127.0.0.1:1', api_version=(4, 0)"


def loaded(program: str, shown: str = "sys.modules") -> set[str]:
    """Return the modules that a process has loaded after it has run ``program``, or those of ``shown``."""
    ended = subprocess.run(
        [sys.executable, "-c", f"import sys\n{program}\nprint()\nprint(*{shown})"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(ended.stdout.rpartition("\n\n")[2].split())


@pytest.fixture(scope="module")
def logging_loads() -> set[str]:
    """Return what Python's own ``logging`` loads. In 3.14 that includes dataclasses and inspect."""
    return loaded("import logging")


@pytest.mark.parametrize(
    "program",
    [
        "from kafkacore import KafkaProducer",
        f"from kafkacore import KafkaProducer\nKafkaProducer({_ARGUMENTS}).close()",
        "from kafkacore import KafkaConsumer",
        f"from kafkacore import KafkaConsumer\nKafkaConsumer({_ARGUMENTS}, group_id='g').close()",
    ],
)
def test_plaintext_client_loads_only_what_it_uses(program: str) -> None:
    assert loaded(program) & set(UNUSED) == set()


@pytest.mark.parametrize("arguments", ["--version", "--help"])
def test_command_without_a_client_loads_no_client(arguments: str, logging_loads: set[str]) -> None:
    found = loaded(
        f"from kafkacore.cli.main import main\ntry: main(['{arguments}'])\nexcept SystemExit: pass"
    )
    assert "kafkacore.cli.main" in found
    unwanted = {"kafkacore.client", "kafkacore.cli.common", "kafkacore.spark", *UNUSED}
    assert (found - logging_loads) & unwanted == set()


def test_command_loads_no_other_command() -> None:
    found = loaded(
        "from kafkacore.cli.main import main\n"
        "try: main(['--log-level', 'ERROR', 'topics', '--help'])\nexcept SystemExit: pass"
    )
    assert "kafkacore.cli.topics" in found
    assert found & {"kafkacore.cli.broker", "kafkacore.cli.produce", "kafkacore.spark"} == set()


def test_mechanism_of_a_client_is_loaded_by_its_constructor() -> None:
    """The network thread must not import modules: an import can fail while the program ends."""
    found = loaded(
        "from kafkacore import KafkaProducer\n"
        f"KafkaProducer({_ARGUMENTS}, security_protocol='SASL_PLAINTEXT', sasl_mechanism='SCRAM-SHA-256', "
        "sasl_plain_username='alice', sasl_plain_password='pencil').close()"
    )
    assert {"kafkacore.security.client_authenticator", "kafkacore.security.sasl.scram"} <= found
    assert found & {"ssl", "http", "kafkacore.security.sasl.aws_msk_iam"} == set()


@pytest.mark.parametrize(
    ("codec", "library"), [("snappy", "cramjam"), ("lz4", "lz4.frame"), ("zstd", "zstandard")]
)
def test_codec_of_a_producer_is_loaded_by_its_constructor(codec: str, library: str) -> None:
    found = loaded(
        "from kafkacore import KafkaProducer\n"
        f"KafkaProducer({_ARGUMENTS}, compression_type='{codec}').close()"
    )
    assert found & {"cramjam", "lz4.frame", "zstandard"} == {library}


@pytest.mark.parametrize(
    ("client", "use"),
    [
        ("KafkaProducer", "client.send('lazy', b'v').get(10)"),
        ("KafkaConsumer", "client.subscribe(['lazy']); client.poll(100)"),
    ],
)
def test_client_imports_nothing_on_its_network_thread(our_broker: Any, client: str, use: str) -> None:
    """A client that has been imported needs no further module until its first records."""
    settings = f"bootstrap_servers={our_broker.bootstrap_servers!r}"
    settings += ", group_id='lazy'" if client == "KafkaConsumer" else ""
    found = loaded(
        f"from kafkacore import {client}\n"
        "before = set(sys.modules)\n"
        f"client = {client}({settings})\n"
        f"{use}\nclient.close()",
        "sys.modules.keys() - before",
    )
    # The order of topics in Java is that of their UTF-16 code units.
    assert found <= {"encodings.utf_16_be"}


def test_commands_for_records_load_neither_readers_of_files_nor_sasl(logging_loads: set[str]) -> None:
    found = loaded("from kafkacore.cli.main import build_parser\nbuild_parser('k', ['produce', 'consume'])")
    assert {"kafkacore.cli.produce", "kafkacore.cli.consume"} <= found
    unwanted = {"dataclasses", "datetime", "inspect", "tomllib", "kafkacore.security.sasl"}
    assert (found - logging_loads) & unwanted == set()
