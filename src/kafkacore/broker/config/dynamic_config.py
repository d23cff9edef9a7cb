"""Broker configuration that is changed at run time: of all brokers or of one, kept in the data folder.

Kafka's property names and text in; the configuration in force, and where each value of it comes from, out.
Does not know: requests, how anything is used. Source of the rules: Kafka's ``DynamicBrokerConfig`` (KIP-226).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import IntEnum
from typing import Final, NamedTuple

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.config.config_keys import BROKER_KEYS, as_text
from kafkacore.broker.config.kafka_keys import WITHOUT_EFFECT
from kafkacore.broker.config.kept_keys import checked_kept, is_for_one_broker, kept_key
from kafkacore.broker.config.listener_keys import LISTENER_KEYS, LISTENER_PREFIX
from kafkacore.broker.config.listeners import checked_property, is_secret, listener_key
from kafkacore.broker.config.topic_config import BROKER_SYNONYMS, checked_value, java_double
from kafkacore.broker.storage.checked_json import checked_json, read_checked_json
from kafkacore.broker.storage.disk import Disk
from kafkacore.errors import (
    InvalidConfigurationError,
    InvalidRequestError,
    KafkaConfigurationError,
    KafkaStorageError,
)
from kafkacore.security import Secret
from kafkacore.settings import table
from kafkacore.structs import printable

logger = logging.getLogger(__name__)

FILE_NAME = "dynamic-configs.json"
_VERSION = 1

#: Shown as ``listeners`` and ``advertised.listeners``.
_ADDRESSES: Final = frozenset(
    {"listeners", "host", "port", "security.protocol"}
    | {"advertised.listeners", "advertised.host", "advertised.port"}
)
#: Each node and folder has its own, so that a value of them is never a default.
_WITHOUT_DEFAULT: Final = _ADDRESSES | {"log.dirs", "node.id"}
_KEYS: Final = table(*(key for key in BROKER_KEYS if key.name not in BROKER_SYNONYMS))
#: Those of them, and of topics' defaults, that are obeyed from the moment they are changed.
DYNAMIC_NAMES: Final = BROKER_SYNONYMS.keys() | {key.name for key in _KEYS.values() if key.is_dynamic}


class ConfigSource(IntEnum):
    """Where a value comes from; the numbers are DescribeConfigs'."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5


class Synonym(NamedTuple):
    """A value that was given for a configuration, and where; ``None`` for one that is secret."""

    name: str
    value: str | None
    source: ConfigSource


class DynamicConfigs:
    """Used by the network thread alone.

    Parameters
    ----------
    static:
        What the broker was started with. Its data folder must be there.
    disk:
        The file system.

    Raises
    ------
    KafkaStorageError
        The file in the data folder cannot be read.
    """

    def __init__(self, static: BrokerConfig, disk: Disk) -> None:
        self._static = static
        self._disk = disk
        self._path = static.data_dir / FILE_NAME
        #: Called with the new configuration after each change.
        self.on_changed: Callable[[BrokerConfig], None] = lambda _: None
        #: Called with a configuration of other listeners that is about to be taken; may refuse it by a
        #: :class:`KafkaConfigurationError`.
        self.on_check: Callable[[BrokerConfig], None] = lambda _: None
        #: Node → its properties; ``None`` is all nodes.
        self._given: dict[int | None, dict[str, str]] = self._read()
        #: The configuration in force.
        self.current = self._in_force(self._given)
        self._static_values = _static_values(static)
        self._defaults = _default_values()

    # ---- Changes --------------------------------------------------------------------------------------

    def of(self, node_id: int | None) -> Mapping[str, str]:
        """The properties that were given for one node, or with ``None`` for all."""
        return self._given.get(node_id, {})

    def check(self, node_id: int | None, properties: Mapping[str, str]) -> dict[str, str]:
        """``properties`` as they would be kept, if they may be all that is given for a node, or for all.

        Raises
        ------
        InvalidRequestError
            Names the property that is unknown, cannot be changed at run time, or has a value that it may not
            have. As in Kafka, not an invalid configuration.
        """
        fixed = [name for name in properties if not is_dynamic(name)]
        if fixed:
            raise InvalidRequestError(" ".join(_why_fixed(name) for name in fixed))
        obeyed = [name for name in properties if kept_key(name) is None]
        if node_id not in (None, self._static.node_id) and obeyed:
            raise InvalidRequestError(
                f"Node {node_id} shares its logs with node {self._static.node_id}: change "
                f"{', '.join(obeyed)} for all brokers."
            )
        of_listeners = [name for name in obeyed if name.startswith(LISTENER_PREFIX)]
        of_one = of_listeners + [name for name in properties if is_for_one_broker(name)]
        if node_id is None and of_one:
            raise InvalidRequestError(
                f"{', '.join(of_one)} cannot be set for all brokers: set it for node {self._static.node_id}."
            )
        checked = {name: _checked(name, text) for name, text in properties.items()}
        try:
            in_force = self._in_force(self._given | {node_id: checked})
            if of_listeners:
                self.on_check(in_force)
        except KafkaConfigurationError as error:
            raise InvalidRequestError(str(error.args[0])) from None
        return checked

    def replace(self, node_id: int | None, properties: Mapping[str, str]) -> None:
        """Let ``properties`` be all that is given for a node, or for all; durable and in force on return.

        Raises
        ------
        InvalidRequestError
            As :meth:`check`.
        OSError
            The disk refuses; nothing has changed.
        """
        given = self._given | {node_id: self.check(node_id, properties)}
        content = {
            "version": _VERSION,
            "brokers": {_node_name(node): values for node, values in given.items() if values},
        }
        self._disk.write_file(self._path, checked_json(content))
        self._given = given
        self.current = self._in_force(given)
        self.on_changed(self.current)

    def _in_force(self, given: Mapping[int | None, Mapping[str, str]]) -> BrokerConfig:
        static = self._static
        properties = {**given.get(None, {}), **given.get(static.node_id, {})}
        properties = {name: text for name, text in properties.items() if kept_key(name) is None}
        if not properties:
            return static
        host = f"[{static.host}]" if ":" in static.host else static.host
        start = {"data_dir": static.data_dir, "listen": f"{host}:{static.port}", "flush": static.flush}
        return BrokerConfig.from_properties({**start, **static.properties(), **properties})

    # ---- The file -------------------------------------------------------------------------------------

    def _read(self) -> dict[int | None, dict[str, str]]:
        if not self._disk.exists(self._path):
            return {}
        try:
            # A flipped bit could have records deleted that are to be kept.
            content = read_checked_json(self._disk.read_file(self._path))
            if content["version"] != _VERSION:
                raise ValueError(f"version {content['version']}")
            return {
                int(node) if node else None: self._usable(dict(values))
                for node, values in content["brokers"].items()
            }
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise KafkaStorageError(
                f"{self._path} cannot be read: {error}; remove it to start without the configuration that "
                "was changed at run time"
            ) from None

    def _usable(self, values: dict[str, str]) -> dict[str, str]:
        """Those that this broker knows: another version may have written the file."""
        usable = {}
        for name, text in values.items():
            try:
                if not is_dynamic(name):
                    raise InvalidRequestError("it cannot be changed at run time")
                usable[name] = _checked(name, text)
                self._in_force({self._static.node_id: usable})
            except (InvalidRequestError, KafkaConfigurationError) as error:
                usable.pop(name, None)
                why = printable(f"{name}={text} is left out: {error.args[0]}")
                logger.error("%s: %s", self._path, why)
        return usable

    # ---- Where a value comes from ---------------------------------------------------------------------

    def synonyms(self, name: str, node_id: int) -> list[Synonym]:
        """All values given for a broker property, strongest first; empty if it has none, not even a default.

        An older property of the same meaning comes behind ``name``, never before it (``ConfigHelper``).
        """
        key = BROKER_SYNONYMS.get(name)
        names = (name,) if key is None or key.fallback is None else (name, key.fallback[0])
        layers: tuple[tuple[Mapping[str, str | None], ConfigSource], ...] = (
            (self.of(node_id), ConfigSource.DYNAMIC_BROKER),
            (self.of(None), ConfigSource.DYNAMIC_DEFAULT_BROKER),
            (self._static_values, ConfigSource.STATIC_BROKER),
            (self._defaults, ConfigSource.DEFAULT),
        )
        found = [
            Synonym(alias, None if is_secret(alias) else values[alias], source)
            for values, source in layers
            for alias in names
            if alias in values
        ]
        while found and found[0].name != name:
            del found[0]
        return found


def is_dynamic(name: str) -> bool:
    """Whether a property can be changed at run time: it is obeyed from then on, or kept without effect."""
    key = listener_key(name) if name.startswith(LISTENER_PREFIX) else None
    return name in DYNAMIC_NAMES or (key is not None and key.is_dynamic) or kept_key(name) is not None


def _checked(name: str, text: str) -> str:
    key = BROKER_SYNONYMS.get(name)
    if kept_key(name) is not None:
        try:
            return checked_kept(name, text)
        except InvalidConfigurationError as error:
            raise InvalidRequestError(str(error.args[0])) from None
    if key is None and name.startswith(LISTENER_PREFIX):
        try:
            checked = checked_property(name, text)
        except KafkaConfigurationError as error:
            raise InvalidRequestError(str(error.args[0])) from None
        return checked.text() if isinstance(checked, Secret) else str(checked)
    if key is None:
        return text.strip()
    try:
        return checked_value(replace(key, name=name), text)
    except InvalidConfigurationError as error:
        raise InvalidRequestError(str(error.args[0])) from None


def _node_name(node_id: int | None) -> str:
    return "" if node_id is None else str(node_id)


def _static_values(static: BrokerConfig) -> dict[str, str | None]:
    """Return the properties the broker was started with that are not defaults; ``None`` for a secret."""
    given = {
        name: None if isinstance(value, Secret) else value for name, value in static.properties().items()
    }
    named = {
        key.name: given[dotted] for key in BROKER_KEYS if (dotted := key.field.replace("_", ".")) in given
    }
    return given | named | {"node.id": str(static.node_id), "log.dirs": str(static.data_dir)}


def _default_values() -> dict[str, str]:
    """Return the default of each property that has one."""
    defaults = {name: _shown(key.default) for name, key in _KEYS.items() if name not in _WITHOUT_DEFAULT}
    for name, key in BROKER_SYNONYMS.items():
        if key.fallback is None:
            defaults[name] = key.default
        else:
            defaults[key.fallback[0]] = key.fallback[1]
    of_listeners = {name: key.default for name, key in LISTENER_KEYS.items() if name not in _KEYS}
    return {name: text for name, text in (of_listeners | defaults).items() if text is not None}


def property_values(config: BrokerConfig) -> dict[str, str | None]:
    """Property → its value as text, but for addresses and what topics get by default."""
    values = {key.name: getattr(config, key.field) for key in _KEYS.values() if key.name not in _ADDRESSES}
    return {name: _shown(value) for name, value in values.items()}


def _shown(value: object) -> str | None:
    if value is None:
        return None
    return java_double(value) if isinstance(value, float) else as_text(value)


def _why_fixed(name: str) -> str:
    if name in _KEYS or listener_key(name) is not None:
        return f"Cannot update {name} dynamically: give it to the broker when it starts."
    reason = WITHOUT_EFFECT.get(name)
    return f"This broker has no {name}" + (f": {reason}." if reason else ".")
