"""Matches the regular expressions that members subscribe to against the topics.

Only topics that the member may describe match. The behaviour is that of Kafka's ``TopicRegexResolver``,
with one difference: the broker matches a regular expression during the heartbeat of a member that uses the
expression. So the response to the first heartbeat already contains the partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kafkacore.broker.config.patterns import matcher_of
from kafkacore.broker.coordinator.interfaces import CoordinatorRecord
from kafkacore.broker.group import records
from kafkacore.broker.group.consumer.consumer_group import (
    NOT_RESOLVED,
    ConsumerGroup,
    ResolvedRegularExpression,
)
from kafkacore.broker.group.consumer.consumer_member import ConsumerGroupMember
from kafkacore.protocol.generated.group_records import ConsumerGroupRegularExpressionValue

if TYPE_CHECKING:
    from kafkacore.broker.config.broker_config import BrokerConfig
    from kafkacore.broker.group.consumer.group_topics import GroupTopics
    from kafkacore.clock import Clock


class RefreshedExpression(NamedTuple):
    """The regular expression of a member after a heartbeat."""

    #: The expression and its matching topics, if these topics have changed.
    resolved: Mapping[str, ResolvedRegularExpression]
    #: Whether the group needs a new target assignment.
    has_changed: bool
    #: Version of the topics and wall-clock time in milliseconds of the match; ``None`` without a match.
    check: tuple[int, int] | None = None


class RegularExpressions:
    """Keeps the regular expressions of groups up to date. Only the network thread may use it.

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

    def refresh(
        self,
        group: ConsumerGroup,
        before: ConsumerGroupMember | None,
        member: ConsumerGroupMember,
        may_describe: Callable[[str], bool],
        batch: list[CoordinatorRecord],
    ) -> RefreshedExpression:
        """Match the regular expression of a member if it is new, or if the topics may have changed.

        Parameters
        ----------
        group:
            The member's group.
        before, member:
            The member before and after its heartbeat.
        may_describe:
            Returns whether the member's client may describe a topic.
        batch:
            Records to which the changes of regular expressions are added.

        Raises
        ------
        InvalidRegularExpressionError
            The member's regular expression is new and not valid.
        """
        regex = member.subscribed_topic_regex or ""
        old = (before.subscribed_topic_regex or "") if before is not None else ""
        is_new = old != regex
        if old and is_new and group.regexes[old] == 1:
            batch.append(records.regular_expression_tombstone(group.group_id, old))
        if not regex:
            return RefreshedExpression(NOT_RESOLVED, has_changed=is_new)
        known, now_ms, version = group.resolved.get(regex), self._clock.wall_ms(), self._topics.version
        checked_version, checked_ms = group.regex_checks.get(regex, (-1, 0))
        interval_ms = self._config.group_consumer_regex_refresh_interval_ms
        if known is not None and checked_version == version and now_ms <= checked_ms + interval_ms:
            return RefreshedExpression(NOT_RESOLVED, has_changed=is_new)
        matches = matcher_of(regex, "SubscribedTopicRegex")
        topics = frozenset(name for name in self._topics.names() if matches(name) and may_describe(name))
        check = (version, now_ms)
        if known is not None and known.topics == topics:
            return RefreshedExpression(NOT_RESOLVED, is_new, check)
        resolved = ResolvedRegularExpression(topics, version, now_ms)
        value = ConsumerGroupRegularExpressionValue(topics=sorted(topics), version=version, timestamp=now_ms)
        batch.append(records.regular_expression(group.group_id, regex, value))
        # A new expression that matches no topic does not change the subscribed topics.
        return RefreshedExpression({regex: resolved}, known is not None or bool(topics), check)
