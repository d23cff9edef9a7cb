"""The features of this broker and their levels.

Names and levels are those of Apache Kafka 4.3 (``Feature``, ``MetadataVersion``). A feature whose highest
level is 0 is not supported and not announced.
"""

from __future__ import annotations

from typing import Final, NamedTuple

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3

GROUP_VERSION: Final = "group.version"
METADATA_VERSION: Final = "metadata.version"
TRANSACTION_VERSION: Final = "transaction.version"


class LevelRange(NamedTuple):
    """The lowest and the highest level of a feature."""

    lowest: int
    highest: int

    def __str__(self) -> str:
        return str(self.lowest) if self.lowest == self.highest else f"{self.lowest}-{self.highest}"


_NOT_SUPPORTED: Final = LevelRange(0, 0)

#: Supported levels by name of the feature. Level 30 of ``metadata.version`` is ``4.3-IV0``.
FEATURES: Final = {
    METADATA_VERSION: LevelRange(30, 30),
    "eligible.leader.replicas.version": _NOT_SUPPORTED,
    GROUP_VERSION: LevelRange(0, 1),
    "kraft.version": _NOT_SUPPORTED,
    "share.version": _NOT_SUPPORTED,
    "streams.version": _NOT_SUPPORTED,
    TRANSACTION_VERSION: LevelRange(0, 2),
}


def refusal(feature: str, level: int, current: int, upgrade_type: int, controller_id: int) -> str | None:
    """Return Kafka's message why a feature cannot be set to a level, or ``None`` if it can be set."""
    if upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return "The controller does not support the given upgrade type."
    if level < 0:
        return "A feature version cannot be less than 0."
    supported = FEATURES.get(feature, _NOT_SUPPORTED)
    if not supported.lowest <= level <= supported.highest:
        controller = f"Local controller {controller_id}"
        if supported.highest == 0:
            return f"{controller} does not support this feature."
        return f"{controller} only supports versions {supported}"
    if level < current and upgrade_type == UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or "
            "unsafe downgrade."
        )
    if level > current and upgrade_type != UPGRADE:
        return "Can't downgrade to a newer version."
    if feature not in FEATURES:
        return f"Feature {feature} not found."
    return None
