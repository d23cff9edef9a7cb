"""The finalized levels of the features, which UpdateFeatures changes (KIP-584)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kafkacore.broker.config.features import FEATURES, GROUP_VERSION, TRANSACTION_VERSION, refusal
from kafkacore.errors import InvalidUpdateVersionError
from kafkacore.protocol.generated.metadata_records import FeatureLevelRecord
from kafkacore.structs import printable


class FeatureUpdate(NamedTuple):
    """A requested change: the feature, its new level and the type of the upgrade."""

    feature: str
    level: int
    upgrade_type: int


class FeatureLevels:
    """The level of each feature that is in effect. Only the network thread may use it.

    A feature has its highest level until a record sets another level.

    Attributes
    ----------
    group_version:
        The level of ``group.version``. It is an attribute, because each heartbeat of a consumer group needs
        it.
    transaction_version:
        The level of ``transaction.version``. It is an attribute, because each change of a transaction needs
        it.
    """

    def __init__(self) -> None:
        self._changed: dict[str, int] = {}
        self._keep_levels()

    def level(self, feature: str) -> int:
        """Return the level of a feature; 0 if it is disabled or not known."""
        changed = self._changed.get(feature)
        if changed is not None:
            return changed
        supported = FEATURES.get(feature)
        return 0 if supported is None else supported.highest

    def update(self, updates: Iterable[FeatureUpdate], controller_id: int) -> list[FeatureLevelRecord]:
        """Return the metadata records that make an update.

        Parameters
        ----------
        updates:
            Features and their new levels.
        controller_id:
            Node id of the controller, for the message of an error.

        Raises
        ------
        InvalidUpdateVersionError
            A feature cannot have the level. No feature is updated then.
        """
        records = []
        for feature, level, upgrade_type in updates:
            current = self.level(feature)
            reason = refusal(feature, level, current, upgrade_type, controller_id)
            if reason is not None:
                raise InvalidUpdateVersionError(
                    "The update failed for all features since the following feature had an error: Invalid "
                    f"update version {level} for feature {printable(feature)}. {reason}"
                )
            if level != current:
                records.append(FeatureLevelRecord(name=feature, feature_level=level))
        return records

    def apply(self, record: FeatureLevelRecord) -> None:
        """Apply a record.

        Raises
        ------
        ValueError
            This broker does not support the level.
        """
        supported = FEATURES.get(record.name)
        if supported is None or not supported.lowest <= record.feature_level <= supported.highest:
            raise ValueError(
                f"level {record.feature_level} of feature {printable(record.name)} is not supported"
            )
        self._changed[record.name] = record.feature_level
        self._keep_levels()

    def records(self) -> list[FeatureLevelRecord]:
        """Return the records of the levels that differ, or have ever differed, from the highest level."""
        return [
            FeatureLevelRecord(name=feature, feature_level=level)
            for feature, level in sorted(self._changed.items())
        ]

    def _keep_levels(self) -> None:
        self.group_version = self.level(GROUP_VERSION)
        self.transaction_version = self.level(TRANSACTION_VERSION)
