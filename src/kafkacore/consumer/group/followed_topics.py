"""The topics whose metadata a group member needs, and the matching of a pattern subscription."""

from __future__ import annotations

from kafkacore.client import Cluster, Metadata
from kafkacore.clock import Clock
from kafkacore.consumer.group.settings import GroupSettings
from kafkacore.consumer.subscription_state import SubscriptionState, SubscriptionType


class FollowedTopics:
    """Requests the metadata of the subscribed topics, and matches a pattern against existing topics.

    Parameters
    ----------
    settings:
        Settings of the member.
    metadata, subscriptions, clock:
        Objects that all parts of the consumer share.
    """

    def __init__(
        self, settings: GroupSettings, metadata: Metadata, subscriptions: SubscriptionState, clock: Clock
    ) -> None:
        self._settings = settings
        self._metadata = metadata
        self._subscriptions = subscriptions
        self._clock = clock
        self._followed_version = -1
        self._matched_version: int | None = None

    def restart(self) -> None:
        """Make the next :meth:`follow` return the metadata even if they have not changed."""
        self._followed_version = -1

    def request(self) -> None:
        """Request the metadata of the topics that the member needs."""
        if self._subscriptions.needs_all_topics():
            self._metadata.set_need_all_topics(True)
        else:
            self._metadata.set_topics(self._subscriptions.metadata_topics())

    def follow(self) -> Cluster | None:
        """Match a pattern subscription against new metadata, and return the metadata.

        Return ``None`` if the metadata are not new, or the consumer has no subscription.
        """
        version = self._metadata.update_version
        if version == self._followed_version or not self._subscriptions.has_auto_assigned_partitions():
            return None
        self._followed_version = version
        cluster = self._metadata.fetch()
        if self._subscriptions.subscription_type is SubscriptionType.AUTO_PATTERN:
            internal = cluster.internal_topics if self._settings.exclude_internal_topics else frozenset()
            self._subscriptions.subscribe_from_pattern(set(cluster.topics) - internal)
        return cluster

    @property
    def is_current(self) -> bool:
        """Whether :meth:`follow` has handled the current metadata."""
        return self._followed_version == self._metadata.update_version

    def has_matched_pattern(self) -> bool:
        """Return whether the member may join: false until a pattern was matched against current metadata."""
        if self._subscriptions.subscription_type is not SubscriptionType.AUTO_PATTERN:
            return True
        version = self._metadata.update_version
        if self._matched_version is None:
            if not self._metadata.time_to_allow_update(self._clock.monotonic_ms()):
                self._metadata.request_update()
            # Wait for only one metadata update, because there may always be a reason to request another
            # update.
            self._matched_version = version + 1 if self._metadata.update_requested else version
        return version >= self._matched_version and self._followed_version == version

    def joined(self) -> None:
        """Match the pattern against current metadata again before the next join."""
        self._matched_version = None
