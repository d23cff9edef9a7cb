"""What each configuration key of a topic does on this broker, in a sentence, for DescribeConfigs (KIP-569).

Does not know: values, types, where they come from.
"""

from __future__ import annotations

from kafkacore.broker.config.topic_config import TOPIC_CONFIG

_KEPT = "Kept and shown, without effect on this broker: "

#: Topic's key → text.
TOPIC_DOCS: dict[str, str] = {
    "cleanup.policy": "What happens to old segments: delete removes them by time and size, compact keeps the "
    "last record of each key. Both may be given; with neither, records stay for ever.",
    "compression.gzip.level": "How hard gzip tries where compression.type is gzip: 1 to 9, or -1 for its own "
    "default.",
    "compression.lz4.level": "How hard lz4 tries where compression.type is lz4: 1 to 17.",
    "compression.type": "The codec of batches in the log. producer keeps each as it was sent.",
    "compression.zstd.level": "How hard zstd tries where compression.type is zstd: -131072 to 22.",
    "delete.retention.ms": "How long, in ms, a deletion marker stays in a compacted log, so that readers "
    "from the beginning see it.",
    "file.delete.delay.ms": _KEPT + "files of removed segments go as soon as nobody reads them.",
    "flush.messages": _KEPT + "the broker's property flush says when data is on disk.",
    "flush.ms": _KEPT + "the broker's property flush says when data is on disk.",
    "follower.replication.throttled.replicas": _KEPT + "there are no followers to slow down.",
    "index.interval.bytes": "About how many bytes of a segment lie between two entries of its offset index.",
    "internal.segment.bytes": "How many bytes a segment may have; used instead of segment.bytes where it is "
    "set.",
    "leader.replication.throttled.replicas": _KEPT + "there are no followers to slow down.",
    "local.retention.bytes": _KEPT + "there is no tiered storage.",
    "local.retention.ms": _KEPT + "there is no tiered storage.",
    "max.compaction.lag.ms": "After how many ms at the latest a record may be compacted, however little "
    "there is to gain.",
    "max.message.bytes": "The largest batch, in bytes as it arrives, that is taken.",
    "message.timestamp.after.max.ms": "How many ms a timestamp may be ahead of the broker's clock.",
    "message.timestamp.before.max.ms": "How many ms a timestamp may be behind the broker's clock.",
    "message.timestamp.type": "Whose clock records carry: the producer's (CreateTime), or the broker's at "
    "the append (LogAppendTime).",
    "min.cleanable.dirty.ratio": "Which part of a compacted log must be uncompacted before it is worth a "
    "run of the cleaner.",
    "min.compaction.lag.ms": "For how many ms a record stays as it is before it may be compacted.",
    "min.insync.replicas": "How many replicas acks=all needs. Every partition here has one; with more than 1 "
    "such writes are refused.",
    "preallocate": _KEPT + "segments grow as they are written.",
    "remote.log.copy.disable": _KEPT + "there is no tiered storage.",
    "remote.log.delete.on.disable": _KEPT + "there is no tiered storage.",
    "remote.storage.enable": "Tiered storage, which this broker does not have; only false is taken.",
    "retention.bytes": "How many bytes a partition may hold before its oldest segments go; a negative number "
    "is no limit.",
    "retention.ms": "For how many ms a record is kept at least; -1 is for ever.",
    "segment.bytes": "How many bytes a segment may have before the next one begins.",
    "segment.index.bytes": "How many bytes a segment's index may have before the next segment begins.",
    "segment.jitter.ms": _KEPT + "segments begin when segment.ms says so.",
    "segment.ms": "After how many ms the next segment begins, even if this one is not full.",
    "unclean.leader.election.enable": _KEPT + "a partition has one replica, which is always in sync.",
}

#: Broker property that sets a topic's default → text.
DEFAULT_DOCS: dict[str, str] = {
    key.broker_name: f"Of topics that do not say otherwise. {TOPIC_DOCS[name]}"
    for name, key in TOPIC_CONFIG.items()
    if key.broker_name
}
