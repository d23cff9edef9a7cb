"""The feature levels of this broker. It supports one level of each feature, which is always in effect.

Names and levels are those of Apache Kafka 4.3 (``Feature``, ``MetadataVersion``). A feature at level 0 is
disabled and not announced.
"""

from __future__ import annotations

from typing import Final

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3

#: Feature levels by name. Level 30 of ``metadata.version`` is ``4.3-IV0``.
FEATURES: Final = {
    "metadata.version": 30,
    "eligible.leader.replicas.version": 0,
    "group.version": 0,
    "kraft.version": 0,
    "share.version": 0,
    "streams.version": 0,
    "transaction.version": 2,
}


def refusal(feature: str, level: int, upgrade_type: int) -> str | None:
    """Return why a feature cannot be set to a level, or ``None`` if the broker supports that level."""
    known = FEATURES.get(feature)
    if upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return "The controller does not support the given upgrade type."
    if level < 0:
        return "A feature version cannot be less than 0."
    if known is None:
        return "This broker does not have this feature."
    if level != known:
        return f"This broker supports only version {known} of this feature."
    return None
