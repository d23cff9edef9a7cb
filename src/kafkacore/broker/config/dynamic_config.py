"""Broker settings that are changed at run time, for all brokers or for one broker.

The settings are stored in the data folder. The rules are those of Kafka's ``DynamicBrokerConfig`` (KIP-226).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from kafkacore.logs import logger_of
from kafkacore.security import Secret
from kafkacore.settings import table
from kafkacore.structs import printable

logger = logger_of(__name__)

FILE_NAME = "dynamic-configs.json"
_VERSION = 1

#: Settings that are shown as ``listeners`` and ``advertised.listeners``.
_ADDRESSES: Final = frozenset(
    {"listeners", "host", "port", "security.protocol"}
    | {"advertised.listeners", "advertised.host", "advertised.port"}
)
#: Settings that differ between nodes, so they have no default for all nodes.
_WITHOUT_DEFAULT: Final = _ADDRESSES | {"log.dirs", "node.id"}
_KEYS: Final = table(*(key for key in BROKER_KEYS if key.name not in BROKER_SYNONYMS))
#: Settings that cannot be changed while the broker runs, and alternative names of these settings.
_STATIC_NAMES: Final = _KEYS.keys() | {
    "broker.id",
    "data.dir",
    "log.dir",
    "process.roles",
    "security.inter.broker.protocol",
}
#: Settings of the broker and defaults of topics that can be changed while the broker runs.
DYNAMIC_NAMES: Final = BROKER_SYNONYMS.keys() | {key.name for key in _KEYS.values() if key.is_dynamic}
#: Settings of a listener that can be changed for all brokers (Kafka's ``ClusterLevelListenerConfigs``).
_OF_ALL_LISTENERS: Final = (
    LISTENER_KEYS["max.connections"],
    LISTENER_KEYS["max.connection.creation.rate"],
)


class ConfigSource(IntEnum):
    """The source of a value; the numbers are those of DescribeConfigs."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class Synonym(NamedTuple):
    """A value given for a setting, with its source. A secret value is ``None``."""

    name: str
    value: str | None
    source: ConfigSource


class DynamicConfigs:
    """The configuration in effect: the static configuration with the changes made at run time.

    Only the network thread uses it.

    Parameters
    ----------
    static:
        The configuration with which the broker was started. Its data folder must exist.
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
        #: Function that is called with the new configuration after each change.
        self.on_changed: Callable[[BrokerConfig], None] = lambda _: None
        #: Function that is called with the new configuration before listener settings change. It may reject
        #: the settings by raising :class:`KafkaConfigurationError`.
        self.on_check: Callable[[BrokerConfig], None] = lambda _: None
        #: Changed settings by node ID; the key ``None`` stands for all nodes.
        self._given: dict[int | None, dict[str, str]] = self._read()
        #: The configuration in effect.
        self.current = self._in_force(self._given)
        self._static_values = _static_values(static)
        self._defaults = _default_values()

    # ---- Changes --------------------------------------------------------------------------------------

    def of(self, node_id: int | None) -> Mapping[str, str]:
        """Return the settings that were changed for one node, or for all nodes if ``node_id`` is ``None``."""
        return self._given.get(node_id, {})

    def check(self, node_id: int | None, properties: Mapping[str, str]) -> dict[str, str]:
        """Check a complete set of dynamic settings for a node, or for all nodes if ``node_id`` is ``None``.

        Returns
        -------
        dict of str to str
            The settings in Kafka's notation, as they are stored.

        Raises
        ------
        InvalidRequestError
            A setting is unknown, cannot be changed at run time, or has an invalid value. As in Kafka, the
            error is not ``InvalidConfigurationError``.
        """
        fixed = [name for name in properties if not is_dynamic(name)]
        if fixed:
            raise InvalidRequestError(_why_fixed(fixed))
        obeyed = [name for name in properties if kept_key(name) is None]
        if node_id not in (None, self._static.node_id) and obeyed:
            raise InvalidRequestError(
                f"Node {node_id} shares its logs with node {self._static.node_id}: set "
                f"{', '.join(obeyed)} for all brokers."
            )
        of_listeners = [name for name in obeyed if name.startswith(LISTENER_PREFIX)]
        of_one = [name for name in of_listeners if listener_key(name) not in _OF_ALL_LISTENERS]
        of_one += [name for name in properties if is_for_one_broker(name)]
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
        """Replace all dynamic settings of a node, or those for all nodes if ``node_id`` is ``None``.

        On return the settings are on disk and in effect.

        Raises
        ------
        InvalidRequestError
            In the same cases as :meth:`check`.
        OSError
            The file cannot be written; nothing has changed.
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
            # The checksum matters: a flipped bit in a retention setting could delete records.
            content = read_checked_json(self._disk.read_file(self._path))
            if content["version"] != _VERSION:
                raise ValueError(f"unsupported version {content['version']}")
            return {
                int(node) if node else None: self._usable(dict(values))
                for node, values in content["brokers"].items()
            }
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise KafkaStorageError(
                f"{self._path} cannot be read: {error}. Remove it to start without the settings that were "
                "changed at run time"
            ) from None

    def _usable(self, values: dict[str, str]) -> dict[str, str]:
        """Return the valid settings. A file of another broker version may contain invalid settings."""
        usable = {}
        for name, text in values.items():
            try:
                if not is_dynamic(name):
                    raise InvalidRequestError("the setting cannot be changed at run time")
                usable[name] = _checked(name, text)
                self._in_force({self._static.node_id: usable})
            except (InvalidRequestError, KafkaConfigurationError) as error:
                usable.pop(name, None)
                why = printable(f"ignoring {name}={text}: {error.args[0]}")
                logger.error("%s: %s", self._path, why)
        return usable

    # ---- Sources of values ----------------------------------------------------------------------------

    def synonyms(self, name: str, node_id: int) -> list[Synonym]:
        """Return all values of a broker setting, highest precedence first. The default, if any, is last.

        As in Kafka's ``ConfigHelper``, an older setting with the same meaning is listed after ``name``.
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
    """Whether a setting can be changed at run time, even if it has no effect on this broker."""
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
    """Return the broker's properties at its start that differ from the defaults; a secret is ``None``."""
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
    """Return the values of the broker settings as text, without addresses and defaults of topics."""
    values = {key.name: getattr(config, key.field) for key in _KEYS.values() if key.name not in _ADDRESSES}
    return {name: _shown(value) for name, value in values.items()}


def _shown(value: object) -> str | None:
    if value is None:
        return None
    return java_double(value) if isinstance(value, float) else as_text(value)


def _why_fixed(names: Sequence[str]) -> str:
    """Return why settings cannot be changed at run time."""
    static = [name for name in names if name in _STATIC_NAMES or listener_key(name) is not None]
    text = [f"Cannot update these configs dynamically: [{', '.join(static)}]"] if static else []
    for name in names:
        if name not in static:
            reason = WITHOUT_EFFECT.get(name)
            text.append(f"This broker has no setting {name}" + (f": {reason}." if reason else "."))
    return " ".join(text)
