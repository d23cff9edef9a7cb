"""Profiles: named settings of clients in a TOML file, one section for each cluster or user."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

from kafkacore.client.config import CLIENT_SETTINGS
from kafkacore.errors import KafkaConfigurationError
from kafkacore.security.references import REFERENCE
from kafkacore.security.settings import SECRET_SETTINGS
from kafkacore.settings.toml_file import read_toml
from kafkacore.text import did_you_mean

#: Environment variables: the first has the path of the profiles file. The second has the name of the profile
#: that is used if ``--profile`` is not given.
CONFIG_VARIABLE = "KAFKACORE_CONFIG"
PROFILE_VARIABLE = "KAFKACORE_PROFILE"
#: Name of a setting → name of its property, if it is not the name of the setting with dots instead of
#: underscores. Command-line arguments use these names too, so that they override the profile.
_PROPERTIES = {
    "sasl_plain_username": "sasl.username",
    "sasl_plain_password": "sasl.password",
    "ssl_cafile": "ssl.ca.location",
}


def profiles_path() -> Path:
    """Return the path of the file with the profiles."""
    if given := os.environ.get(CONFIG_VARIABLE):
        return Path(given)
    folder = os.environ.get("XDG_CONFIG_HOME")
    return (Path(folder) if folder else Path.home() / ".config") / "kafkacore" / "profiles.toml"


def read_profile(name: str) -> dict[str, str]:
    """Return the settings of a profile as client properties.

    A warning goes to standard error if other users can read a password in the file.

    Raises
    ------
    KafkaConfigurationError
        The file or the profile does not exist, or a setting is invalid. The message does not contain the
        values of settings.
    """
    path = profiles_path()
    if not path.exists():
        raise KafkaConfigurationError(
            f"profile {name!r} does not exist, because the file {path} does not: create it with a section "
            f"[{name}], or set ${CONFIG_VARIABLE} to another file"
        )
    profiles = read_toml(path, "file of profiles")
    _warn_of_readers(path, profiles)
    names = [each for each, profile in profiles.items() if isinstance(profile, Mapping)]
    profile = profiles.get(name)
    if not isinstance(profile, Mapping):
        hint = did_you_mean(name, names, f"its profiles are {', '.join(names) or 'none'}", show=repr)
        raise KafkaConfigurationError(f"{path} has no profile {name!r}: {hint}")
    return dict(_property(f"{path}: profile {name!r}", *setting) for setting in profile.items())


def _property(place: str, name: str, value: object) -> tuple[str, str]:
    """Return the name and the text of the property that corresponds to a setting."""
    if name not in CLIENT_SETTINGS:
        hint = did_you_mean(name, CLIENT_SETTINGS, "use a setting that all kafka-python clients have")
        raise KafkaConfigurationError(f"{place} has an unknown setting {name!r}: {hint}")
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(each, str | int | float) for each in values):
        raise KafkaConfigurationError(f"{place}: {name} must be a string, a number, a boolean, or a list")
    texts = (str(each).lower() if isinstance(each, bool) else str(each) for each in values)
    return _PROPERTIES.get(name, name.replace("_", ".")), ",".join(texts)


def _warn_of_readers(path: Path, profiles: Mapping[str, object]) -> None:
    readable = path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH)
    if readable and any(
        _is_secret(name, value)
        for profile in profiles.values()
        if isinstance(profile, Mapping)
        for name, value in profile.items()
    ):
        print(
            f"kafkacore: warning: {path} contains a password, and other users can read the file: run "
            f"chmod 600 {path}",
            file=sys.stderr,
        )


def _is_secret(name: str, value: object) -> bool:
    """Return whether a setting contains a secret itself, and not a reference or the path of a file."""
    if name not in SECRET_SETTINGS or not isinstance(value, str) or REFERENCE.search(value):
        return False
    return name != "ssl_keyfile" or "-----BEGIN" in value
