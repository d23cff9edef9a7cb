"""Names of OpenTelemetry's semantic conventions for messaging, and the trace context in headers of records.

OpenTelemetry's own Python package has these names only in a private module that may change.
"""

from __future__ import annotations

from typing import Final

from opentelemetry.propagators.textmap import Getter, Setter

#: Headers of one record.
Headers = list[tuple[str, bytes | None]]
#: Attributes of a span or of a measured value.
Attributes = dict[str, str | int | bool]

SYSTEM: Final = "messaging.system"
OPERATION_NAME: Final = "messaging.operation.name"
OPERATION_TYPE: Final = "messaging.operation.type"
DESTINATION: Final = "messaging.destination.name"
PARTITION: Final = "messaging.destination.partition.id"
CLIENT_ID: Final = "messaging.client.id"
GROUP: Final = "messaging.consumer.group.name"
BATCH_COUNT: Final = "messaging.batch.message_count"
OFFSET: Final = "messaging.kafka.offset"
KEY: Final = "messaging.kafka.message.key"
TOMBSTONE: Final = "messaging.kafka.message.tombstone"
ERROR_TYPE: Final = "error.type"

#: Metrics.
OPERATION_DURATION: Final = "messaging.client.operation.duration"
SENT_MESSAGES: Final = "messaging.client.sent.messages"
CONSUMED_MESSAGES: Final = "messaging.client.consumed.messages"
PROCESS_DURATION: Final = "messaging.process.duration"
#: Bounds of the histogram buckets of durations, in seconds.
DURATION_BUCKETS_S: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25),
    *(0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
)

#: Name under which tracers and meters are created.
INSTRUMENTATION: Final = "kafkacore"


def operation(name: str, kind: str, topic: str, client_id: str | None, group_id: str | None) -> Attributes:
    """Return the attributes that all spans of an operation have."""
    attributes: Attributes = {
        SYSTEM: "kafka",
        OPERATION_NAME: name,
        OPERATION_TYPE: kind,
        DESTINATION: topic,
    }
    if client_id is not None:
        attributes[CLIENT_ID] = client_id
    if group_id is not None:
        attributes[GROUP] = group_id
    return attributes


def measured(attributes: Attributes) -> Attributes:
    """Return the attributes for a metric: those attributes of a span that have few distinct values."""
    names = (SYSTEM, OPERATION_NAME, OPERATION_TYPE, DESTINATION, PARTITION, GROUP, ERROR_TYPE)
    return {name: attributes[name] for name in names if name in attributes}


def key_text(key: object) -> str | None:
    """Return a record's key as text, or ``None`` if the key has no unambiguous text."""
    if isinstance(key, bytes | bytearray | memoryview):
        try:
            return bytes(key).decode("utf-8")
        except UnicodeDecodeError:
            return None
    return str(key) if isinstance(key, str | int) else None


def error_type(error: BaseException) -> str:
    """Return the name of an error's class."""
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


class HeaderSetter(Setter[Headers]):
    """Writes fields of a trace context to the headers of a record, replacing headers with the same names."""

    def set(self, carrier: Headers, key: str, value: str) -> None:
        carrier[:] = [header for header in carrier if header[0] != key]
        carrier.append((key, value.encode("utf-8")))


class HeaderGetter(Getter[Headers]):
    """Reads fields of a trace context from the headers of a record. Invalid UTF-8 is replaced."""

    def get(self, carrier: Headers, key: str) -> list[str] | None:
        found = [value.decode("utf-8", "replace") for name, value in carrier if name == key and value]
        return found or None

    def keys(self, carrier: Headers) -> list[str]:
        return [name for name, _ in carrier]


HEADER_SETTER: Final = HeaderSetter()
HEADER_GETTER: Final = HeaderGetter()
