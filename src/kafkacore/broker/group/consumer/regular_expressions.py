"""Matches the regular expressions that members subscribe to against the topics.

Only topics that the member may describe match. The behaviour is that of Kafka's ``GroupMetadataManager`` and
``TopicRegexResolver``: a match follows the heartbeat that makes it due, and the next heartbeat uses it. Kafka
matches on another thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kafkacore.broker.config.patterns import matcher_of
from kafkacore.broker.coordinator.interfaces import CoordinatorRecord
from kafkacore.broker.group import records
from kafkacore.broker.group.consumer.consumer_group import ConsumerGroup, ResolvedRegularExpression
from kafkacore.broker.group.consumer.consumer_member import ConsumerGroupMember
from kafkacore.broker.log_lines import NameLogger
from kafkacore.errors import InvalidRegularExpressionError

if TYPE_CHECKING:
    from kafkacore.broker.config.broker_config import BrokerConfig
    from kafkacore.broker.group.consumer.group_topics import GroupTopics
    from kafkacore.clock import Clock

logger = NameLogger(__name__)

#: Name of an expression in error messages.
SUBSCRIBED_TOPIC_REGEX = "SubscribedTopicRegex"


class RegularExpressions:
    """Checks and matches regular expressions. Only the network thread may use it.

    Parameters
    ----------
    topics:
        The topics.
    config:
        Configuration of the broker, for ``group.consumer.regex.refresh.interval.ms``.
    clock:
        Source of the wall-clock time.
    """

    def __init__(self, topics: GroupTopics, config: BrokerConfig, clock: Clock) -> None:
        self._topics = topics
        self._config = config
        self._clock = clock

    def replace(
        self,
        group: ConsumerGroup,
        before: ConsumerGroupMember | None,
        member: ConsumerGroupMember,
        batch: list[CoordinatorRecord],
    ) -> bool:
        """Check the regular expression of a member if it is new.

        Parameters
        ----------
        group:
            The member's group.
        before, member:
            The member before and after its heartbeat.
        batch:
            List to which a tombstone is added if no other member uses the previous expression.

        Returns
        -------
        bool
            Whether the group epoch must rise at once, because the member has no expression any more or the
            topics of the new one are known. Otherwise :meth:`match` decides this after the heartbeat.

        Raises
        ------
        InvalidRegularExpressionError
            The new expression is not valid.
        """
        regex = member.subscribed_topic_regex or ""
        old = (before.subscribed_topic_regex or "") if before is not None else ""
        if old == regex:
            return False
        if old and group.regexes[old] == 1:
            batch.append(records.regular_expression_tombstone(group.group_id, old))
        if not regex:
            return True
        if regex not in group.regexes:
            matcher_of(regex, SUBSCRIBED_TOPIC_REGEX)
        return regex in group.resolved

    def match(
        self, group: ConsumerGroup, regex: str, may_describe: Callable[[str], bool]
    ) -> ResolvedRegularExpression | None:
        """Match a regular expression of a group if it is new, or if the topics may have changed.

        Parameters
        ----------
        group:
            The group.
        regex:
            The expression.
        may_describe:
            Returns whether the client of the member may describe a topic.

        Returns
        -------
        ResolvedRegularExpression or None
            The topics that match; ``None`` if no match is due.
        """
        now_ms, version = self._clock.wall_ms(), self._topics.version
        checked_version, checked_ms = group.regex_checks.get(regex, (-1, 0))
        interval_ms = self._config.group_consumer_regex_refresh_interval_ms
        if regex in group.resolved and checked_version == version and now_ms <= checked_ms + interval_ms:
            return None
        try:
            matches = matcher_of(regex, SUBSCRIBED_TOPIC_REGEX)
        except InvalidRegularExpressionError as error:
            # Kafka has accepted an expression that this broker does not, or google-re2 has been removed.
            logger.error("group %s: ignoring an expression: %s", group.group_id, error)
            return ResolvedRegularExpression(frozenset(), version, now_ms)
        topics = frozenset(name for name in self._topics.names() if matches(name) and may_describe(name))
        return ResolvedRegularExpression(topics, version, now_ms)
