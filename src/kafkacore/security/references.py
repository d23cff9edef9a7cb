"""References to secrets in settings: ``${env:KAFKA_PASSWORD}`` and ``${file:/run/secrets/kafka}``.

The author of a setting may be less trusted than the process that reads it. So only a setting that holds a
secret may contain a reference, and only the process's environment decides what a reference may name
(CVE-2024-31141, KIP-993).
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from kafkacore.errors import KafkaConfigurationError
from kafkacore.security.settings import OTHER_NAMES, SECRET_SETTINGS

#: Environment variable that lists the variables that a reference may name, separated by commas.
ALLOWED_VARIABLES: Final = "KAFKACORE_SECRETS_VARIABLES"
#: Environment variable that lists the files that a reference may name, separated by commas. A folder in the
#: list allows all files below the folder.
ALLOWED_PATHS: Final = "KAFKACORE_SECRETS_PATHS"
#: Maximum size of a file with a secret, in bytes.
MAX_FILE_BYTES: Final = 64 * 1024
REFERENCE: Final = re.compile(r"\$\{(\w+):([^{}]*)\}")

#: Names, with dots, of properties that hold a secret. ``ssl.key.location`` holds no secret: it can only be a
#: path.
_SECRET_PROPERTIES: Final = frozenset(
    {
        "schema.registry.proxy.url",
        *(name.replace("_", ".") for name in SECRET_SETTINGS),
        *(name for name, ours in OTHER_NAMES.items() if ours in SECRET_SETTINGS),
        # Properties of Java's clients and of a schema registry that are not arguments of kafkacore's clients.
        "sasl.jaas.config",
        "schema.registry.auth",
        "ssl.keystore.key",
        "ssl.keystore.password",
        "ssl.truststore.password",
    }
) - {"ssl.key.location"}
#: Pattern for the last part of the name of a ``storage.*`` option that holds a secret. The names are fsspec's
#: and deltalake's, and differ from one kind of storage to the next.
_SECRET_OF_STORAGE: Final = re.compile(
    r"(?i)pass|pwd|secret|token|credential|key|sas|signature|connection_string|authorization"
)


def holds_secret(name: str) -> bool:
    """Return whether the value of a setting is a secret.

    Parameters
    ----------
    name:
        Name of a Kafka property, of a client's argument, or of an option of a Spark source or sink.
    """
    name = name.lower()
    if name.startswith("storage."):
        return _SECRET_OF_STORAGE.search(name.rpartition(".")[2]) is not None
    return re.sub(r"^(kafka|key|value)\.", "", name).replace("_", ".") in _SECRET_PROPERTIES


def refuse_reference(text: str, name: str) -> None:
    """Raise an error if ``text`` contains a reference although ``name`` holds no secret.

    Raises
    ------
    KafkaConfigurationError
        The setting holds no secret. Its value may appear in messages and may be sent to the broker, so the
        secret would be disclosed.
    """
    if REFERENCE.search(text) and not holds_secret(name):
        raise KafkaConfigurationError(
            f"{name} contains a reference such as ${{env:NAME}}, which is allowed only in options that hold "
            f"a secret: write the value itself"
        )


def resolved(text: str, name: str, process: str = "this process") -> str:
    """Return ``text`` with every reference replaced by the secret that it names.

    References inside a secret are not replaced.

    Parameters
    ----------
    text:
        A setting's value.
    name:
        The setting's name.
    process:
        The process whose environment the user has to change, for error messages.

    Raises
    ------
    KafkaConfigurationError
        The setting holds no secret, the operator has not allowed the variable or the file, or this machine
        has no such variable or file. The message never contains ``text`` or a secret.
    """
    refuse_reference(text, name)
    return REFERENCE.sub(lambda match: _value(match[1], match[2].strip(), name, process), text)


def _value(kind: str, place: str, name: str, process: str) -> str:
    if kind == "env":
        if place not in _listed(ALLOWED_VARIABLES):
            raise KafkaConfigurationError(
                f"{name} refers to the environment variable {place!r}, which is not allowed: the operator "
                f"must add its name to the environment variable {ALLOWED_VARIABLES} of {process}"
            )
        value = os.environ.get(place)
        if value is None:
            raise KafkaConfigurationError(
                f"{name} refers to the environment variable {place!r}, which is not set: set it for {process}"
            )
        return value
    if kind == "file":
        return read_secret(_allowed_file(place, name, process), name)
    raise KafkaConfigurationError(
        f"{name} contains a reference of an unknown kind: use ${{env:NAME}} or ${{file:PATH}}"
    )


def _listed(variable: str) -> list[str]:
    return [entry.strip() for entry in os.environ.get(variable, "").split(",") if entry.strip()]


def _allowed_file(place: str, name: str, process: str) -> Path:
    """Return the real path of a file that the operator has allowed.

    The caller opens the returned path, which contains no symbolic links at the time of this check. A link
    that is created or changed later can lead out of an allowed folder only if the link itself is inside that
    folder.
    """
    # realpath() rejects a null byte with a ValueError.
    real = Path(os.path.realpath(place.replace("\0", "?")))
    for entry in _listed(ALLOWED_PATHS):
        if not os.path.isabs(entry):
            raise KafkaConfigurationError(f"{ALLOWED_PATHS} contains {entry!r}: write absolute paths")
        if real.is_relative_to(os.path.realpath(entry)):
            return real
    raise KafkaConfigurationError(
        f"{name} refers to the file {place!r}, which is not allowed: the operator must add the file or its "
        f"folder to the environment variable {ALLOWED_PATHS} of {process}"
    )


def allow(variable: str, entry: str) -> None:
    """Allow one more variable or path, in this process and in the processes that it starts.

    Parameters
    ----------
    variable:
        :data:`ALLOWED_VARIABLES` or :data:`ALLOWED_PATHS`.
    entry:
        Name of a variable, or an absolute path. It must not contain a comma.
    """
    if entry not in (entries := _listed(variable)):
        os.environ[variable] = ",".join([*entries, entry])


def read_secret(file: Path, name: str) -> str:
    """Return the text of a file without its final line breaks.

    Raises
    ------
    KafkaConfigurationError
        The file cannot be read, is too large, or is not text. The message contains ``name``, the name of the
        setting.
    """
    try:
        with file.open("rb") as opened:
            held = opened.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise KafkaConfigurationError(
            f"{name} refers to the file {str(file)!r}, which cannot be read: {error.strerror}"
        ) from None
    try:
        if len(held) <= MAX_FILE_BYTES:
            return held.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        pass
    raise KafkaConfigurationError(
        f"{name} refers to the file {str(file)!r}, which must be text in UTF-8 of at most "
        f"{MAX_FILE_BYTES} bytes"
    ) from None
