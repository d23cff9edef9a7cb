"""Enumerations of access control entries and of user credentials.

Names are those of kafka-python (``kafka.admin``).
"""

from __future__ import annotations

from enum import IntEnum


class ResourceType(IntEnum):
    """Type of the resource in an access control entry. ``ANY`` is valid only in filters."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class ACLResourcePatternType(IntEnum):
    """How the name in an access control entry matches resources (KIP-290).

    ``ANY`` and ``MATCH`` are valid only in filters.
    """

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class ACLOperation(IntEnum):
    """The operation that an access control entry allows or denies. ``ANY`` is valid only in filters."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class ACLPermissionType(IntEnum):
    """Whether an access control entry allows or denies. ``ANY`` is valid only in filters."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class ScramMechanism(IntEnum):
    """SASL/SCRAM mechanisms of user credentials."""

    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def hash_name(self) -> str:
        """Name of the hash function in :mod:`hashlib`."""
        return {1: "sha256", 2: "sha512"}[self]
