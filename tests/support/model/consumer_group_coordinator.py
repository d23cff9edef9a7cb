"""A model of a group of KIP-848 on its coordinator, as one member of the group sees it.

It belongs to a :class:`~model.group_coordinator.ModelCoordinator` (``coordinator.consumers``). A test sets
the target assignment and the errors. An assignment is returned when it has changed, or when a heartbeat
contains all fields, as by Apache Kafka.
"""

from collections import defaultdict

from kafkacore.protocol.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kafkacore.structs import TopicPartition

UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH = 25, 110
INTERVAL_MS = 5000


class ModelConsumerGroup:
    """One group with our member.

    Attributes
    ----------
    epoch:
        Member epoch of our member; 0 if it is not a member.
    target:
        Partitions that our member is to have. ``None`` assigns all partitions of the subscribed topics.
    owned:
        Partitions that our member reported last.
    """

    def __init__(self, cluster):
        self.cluster = cluster
        self.member_id = None
        self.epoch = 0
        self.target = None
        self.owned = set()
        self.topics = set()
        self.interval_ms = INTERVAL_MS
        self.error_message = None
        self._must_return = False

    def assign(self, *partitions):
        """Assign exactly these partitions with the next member epoch, from the next heartbeat on."""
        self.target = set(partitions)
        self.epoch += 1
        self._must_return = True

    def remove(self):
        """Remove our member from the group."""
        self.member_id, self.epoch = None, 0

    @property
    def beats(self):
        """Return the heartbeats in the order of their arrival."""
        return self.cluster.requests_of(ConsumerGroupHeartbeatRequest)

    @property
    def news(self):
        """Return the heartbeats that contain more than member id and epoch."""
        return [each for each in self.beats if not is_plain(each)]

    def answer(self, request, code):
        if code:
            return ConsumerGroupHeartbeatResponse(error_code=code, error_message=self.error_message)
        if request.member_epoch < 0:
            self.remove()
            return ConsumerGroupHeartbeatResponse(
                member_id=request.member_id, member_epoch=request.member_epoch
            )
        if request.member_epoch == 0:
            self.member_id = request.member_id
            self.epoch += 1
        elif request.member_id != self.member_id:
            return ConsumerGroupHeartbeatResponse(error_code=UNKNOWN_MEMBER_ID)
        elif request.member_epoch not in (self.epoch, self.epoch - 1):
            return ConsumerGroupHeartbeatResponse(error_code=FENCED_MEMBER_EPOCH)
        return self._alive(request)

    def _alive(self, request):
        if request.subscribed_topic_names is not None:
            self._must_return |= self.target is None and self.topics != set(request.subscribed_topic_names)
            self.topics = set(request.subscribed_topic_names)
        if request.topic_partitions is not None:
            self.owned = {
                TopicPartition(self.name_of(each.topic_id), number)
                for each in request.topic_partitions
                for number in each.partitions
            }
        is_full = request.rebalance_timeout_ms >= 0
        response = ConsumerGroupHeartbeatResponse(
            member_id=request.member_id,
            member_epoch=self.epoch,
            heartbeat_interval_ms=self.interval_ms,
            assignment=self._assignment() if is_full or self._must_return else None,
        )
        self._must_return = False
        return response

    def name_of(self, topic_id):
        names = {self.cluster.topic_id(tp.topic): tp.topic for tp in self.cluster.logs}
        return names[topic_id]

    def _assignment(self):
        target = self.target
        if target is None:
            target = {tp for tp in self.cluster.logs if tp.topic in self.topics}
        by_topic = defaultdict(list)
        for tp in sorted(target):
            by_topic[self.cluster.topic_id(tp.topic)].append(tp.partition)
        return ConsumerGroupHeartbeatResponse.Assignment(
            topic_partitions=[
                ConsumerGroupHeartbeatResponse.TopicPartitions(topic_id=topic_id, partitions=numbers)
                for topic_id, numbers in by_topic.items()
            ]
        )


def is_plain(request):
    return (
        request.rebalance_timeout_ms == -1
        and request.subscribed_topic_names is None
        and request.topic_partitions is None
        and request.subscribed_topic_regex is None
        and request.member_epoch > 0
    )
