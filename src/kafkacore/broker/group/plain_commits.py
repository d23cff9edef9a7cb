"""Fast decoder of the most common records of ``__consumer_offsets``: commits in the current format.

All other records, including malformed ones, are left to :mod:`~kafkacore.broker.group.records`.
"""

from __future__ import annotations

import struct

from kafkacore.broker.group.offset_store import CommittedOffset, PartitionOffsets
from kafkacore.broker.group.records import NO_TIMESTAMP, OFFSET_COMMIT, OFFSET_COMMIT_VALUE_VERSION
from kafkacore.protocol import ZERO_UUID
from kafkacore.wire import Uuid

_KEY_HEAD = struct.Struct(">hh")
_LENGTH = struct.Struct(">h")
_PARTITION = struct.Struct(">i")
#: First fields of a value: version, offset and leader epoch.
_VALUE_HEAD = struct.Struct(">hqi")
_TIMESTAMP = struct.Struct(">q")
#: Header of the tagged fields if the topic id is the only tagged field: one field, tag 0, 16 bytes.
_TOPIC_ID = b"\x01\x00\x10"
_NO_TAGS = b"\x00"
#: Smallest varint that takes more than one byte.
_LONG = 0x80


class PlainCommits:
    """Adds commits to ``offsets``, with one shared object for each distinct name and topic id."""

    def __init__(self, offsets: PartitionOffsets) -> None:
        self._offsets = offsets
        self._names: dict[bytes, str] = {}
        self._ids: dict[bytes, Uuid] = {}

    def take(self, key: bytes, value: bytes, record_offset: int) -> bool:
        """Add the commit of a record. Return false, and add nothing, for any other record."""
        names = self._names
        try:
            kind, group_size = _KEY_HEAD.unpack_from(key)
            group_end = 4 + group_size
            (topic_size,) = _LENGTH.unpack_from(key, group_end)
            topic_end = group_end + 2 + topic_size
            (partition,) = _PARTITION.unpack_from(key, topic_end)
            version, offset, leader_epoch = _VALUE_HEAD.unpack_from(value)
            # A compact string stores its length plus one; 0 means null.
            size = value[14]
            end = 14 + size
            (timestamp,) = _TIMESTAMP.unpack_from(value, end)
            if (
                kind != OFFSET_COMMIT
                or version != OFFSET_COMMIT_VALUE_VERSION
                or group_size < 0
                or topic_size < 0
                or topic_end + 4 != len(key)
                or not 0 < size < _LONG
            ):
                return False
            tags = value[end + 8 :]
            topic_id = self._ids.get(tags) or self._new_id(tags)
            raw_group, raw_topic = key[4:group_end], key[group_end + 2 : topic_end]
            self._offsets.put(
                names.get(raw_group) or self._new_name(raw_group),
                names.get(raw_topic) or self._new_name(raw_topic),
                partition,
                CommittedOffset(
                    offset,
                    leader_epoch,
                    value[15:end].decode() if size > 1 else "",
                    timestamp,
                    NO_TIMESTAMP,
                    topic_id,
                    record_offset,
                ),
            )
        except (struct.error, IndexError, ValueError):
            return False
        return True

    def _new_name(self, raw: bytes) -> str:
        name = self._names[raw] = raw.decode()
        return name

    def _new_id(self, tags: bytes) -> Uuid:
        if tags == _NO_TAGS:
            found = ZERO_UUID
        elif tags.startswith(_TOPIC_ID):
            found = Uuid(tags[len(_TOPIC_ID) :])
        else:
            raise ValueError("the record has unknown tagged fields")
        self._ids[tags] = found
        return found
