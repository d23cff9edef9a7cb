"""Broker settings of Apache Kafka 4.3 that this broker does not have, each with the reason.

``config_keys`` looks up a name here if it has no setting of that name. The names are those of Kafka's
``KafkaConfig``; a test compares them with Apache Kafka.
"""

from __future__ import annotations

from typing import Final

_BY_REASON: Final = {
    "requests within the broker need no retries": """
        add.partitions.to.txn.retry.backoff.max.ms add.partitions.to.txn.retry.backoff.ms
    """,
    "two-phase commit is not part of Apache Kafka 4.3 yet": """
        transaction.two.phase.commit.enable
    """,
    "it names a Java class, and this broker does not run Java": """
        alter.config.policy.class.name client.quota.callback.class config.providers
        create.topic.policy.class.name kafka.metrics.reporters metric.reporters metrics.recording.level
    """,
    "this broker does not replicate partitions": """
        alter.log.dirs.replication.quota.window.num alter.log.dirs.replication.quota.window.size.seconds
        auto.leader.rebalance.enable cordoned.log.dirs inter.broker.listener.name
        leader.imbalance.check.interval.seconds log.dir.failure.timeout.ms
        num.replica.alter.log.dirs.threads num.replica.fetchers replica.fetch.backoff.ms
        replica.fetch.max.bytes replica.fetch.min.bytes replica.fetch.response.max.bytes
        replica.fetch.wait.max.ms replica.high.watermark.checkpoint.interval.ms replica.lag.time.max.ms
        replica.selector.class replica.socket.receive.buffer.bytes replica.socket.timeout.ms
        replication.quota.window.num replication.quota.window.size.seconds
        unclean.leader.election.interval.ms
    """,
    "one thread serves all requests": """
        background.threads delete.records.purgatory.purge.interval.requests
        fetch.purgatory.purge.interval.requests group.coordinator.append.linger.ms
        group.coordinator.background.threads group.coordinator.threads
        kafka.metrics.polling.interval.secs log.cleaner.threads metrics.num.samples
        metrics.sample.window.ms num.io.threads num.network.threads num.recovery.threads.per.data.dir
        producer.purgatory.purge.interval.requests queued.max.requests
    """,
    "it configures a controller quorum, and this broker has none": """
        broker.heartbeat.interval.ms broker.session.timeout.ms controlled.shutdown.enable
        controller.performance.always.log.threshold.ms controller.performance.sample.period.ms
        controller.quorum.append.linger.ms controller.quorum.auto.join.enable
        controller.quorum.bootstrap.servers controller.quorum.election.backoff.max.ms
        controller.quorum.election.timeout.ms controller.quorum.fetch.max.bytes
        controller.quorum.fetch.snapshot.max.bytes controller.quorum.fetch.timeout.ms
        controller.quorum.request.timeout.ms controller.quorum.retry.backoff.ms controller.quorum.voters
        controller.socket.timeout.ms
        early.start.listeners initial.broker.registration.timeout.ms
        internal.metadata.delete.delay.millis internal.metadata.log.segment.bytes
        internal.metadata.max.batch.size.in.bytes metadata.log.dir
        metadata.log.max.record.bytes.between.snapshots metadata.log.max.snapshot.interval.ms
        metadata.log.segment.bytes metadata.log.segment.ms metadata.max.idle.interval.ms
        metadata.max.retention.bytes metadata.max.retention.ms server.max.startup.time.ms
        unstable.api.versions.enable unstable.feature.versions.enable
    """,
    "this broker chooses the value itself": """
        group.coordinator.cached.buffer.max.bytes
        log.flush.offset.checkpoint.interval.ms log.flush.scheduler.interval.ms
        log.flush.start.offset.checkpoint.interval.ms log.initial.task.delay.ms
        log.retention.check.interval.ms max.request.partition.size.limit
        request.timeout.ms socket.connection.setup.timeout.max.ms
        socket.connection.setup.timeout.ms socket.listen.backlog.size socket.receive.buffer.bytes
        socket.send.buffer.bytes
    """,
    "this broker does not support delegation tokens": """
        delegation.token.expiry.check.interval.ms delegation.token.expiry.time.ms
        delegation.token.max.lifetime.ms delegation.token.secret.key
    """,
    "this broker does not support tiered storage": """
        follower.fetch.last.tiered.offset.enable
        remote.fetch.max.wait.ms remote.list.offsets.request.timeout.ms
        remote.log.index.file.cache.total.size.bytes remote.log.index.file.cache.ttl.ms
        remote.log.manager.copier.thread.pool.size remote.log.manager.copy.max.bytes.per.second
        remote.log.manager.copy.quota.window.num remote.log.manager.copy.quota.window.size.seconds
        remote.log.manager.expiration.thread.pool.size remote.log.manager.fetch.max.bytes.per.second
        remote.log.manager.fetch.quota.window.num remote.log.manager.fetch.quota.window.size.seconds
        remote.log.manager.follower.thread.pool.size remote.log.manager.task.interval.ms
        remote.log.manager.task.retry.backoff.max.ms remote.log.manager.task.retry.backoff.ms
        remote.log.manager.task.retry.jitter remote.log.manager.thread.pool.size
        remote.log.metadata.custom.metadata.max.bytes remote.log.metadata.manager.class.name
        remote.log.metadata.manager.class.path remote.log.metadata.manager.impl.prefix
        remote.log.metadata.manager.listener.name remote.log.reader.max.pending.tasks
        remote.log.reader.threads remote.log.storage.manager.class.name
        remote.log.storage.manager.class.path remote.log.storage.manager.impl.prefix
        remote.log.storage.system.enable
    """,
    "this broker does not support share groups or streams groups": """
        group.share.assignment.interval.ms group.share.assignors group.share.delivery.count.limit
        group.share.heartbeat.interval.ms group.share.initialize.retry.interval.ms
        group.share.max.assignment.interval.ms group.share.max.delivery.count.limit
        group.share.max.heartbeat.interval.ms group.share.max.partition.max.record.locks
        group.share.max.record.lock.duration.ms group.share.max.session.timeout.ms
        group.share.max.share.sessions group.share.max.size group.share.min.assignment.interval.ms
        group.share.min.delivery.count.limit group.share.min.heartbeat.interval.ms
        group.share.min.partition.max.record.locks group.share.min.record.lock.duration.ms
        group.share.min.session.timeout.ms group.share.partition.max.record.locks
        group.share.persister.class.name group.share.record.lock.duration.ms
        group.share.session.timeout.ms group.streams.assignment.interval.ms
        group.streams.heartbeat.interval.ms group.streams.initial.rebalance.delay.ms
        group.streams.max.assignment.interval.ms group.streams.max.heartbeat.interval.ms
        group.streams.max.session.timeout.ms group.streams.max.size group.streams.max.standby.replicas
        group.streams.min.assignment.interval.ms group.streams.min.heartbeat.interval.ms
        group.streams.min.session.timeout.ms group.streams.num.standby.replicas
        group.streams.session.timeout.ms share.coordinator.append.linger.ms
        share.coordinator.cached.buffer.max.bytes share.coordinator.cold.partition.snapshot.interval.ms
        share.coordinator.load.buffer.size share.coordinator.snapshot.update.records.per.snapshot
        share.coordinator.state.topic.compression.codec share.coordinator.state.topic.num.partitions
        share.coordinator.state.topic.prune.interval.ms share.coordinator.state.topic.segment.bytes
        share.coordinator.threads share.coordinator.write.timeout.ms
        share.fetch.purgatory.purge.interval.requests
    """,
    "this broker does not collect client telemetry": """
        telemetry.max.bytes
    """,
}
#: Settings without effect on this broker, each with the reason.
WITHOUT_EFFECT: Final = {name: reason for reason, names in _BY_REASON.items() for name in names.split()}

#: Prefixes of settings without effect on this broker, each with the reason.
WITHOUT_EFFECT_PREFIXES: Final = {"zookeeper.": "this broker does not use ZooKeeper"}

#: Why some listener settings have no effect on this broker.
CLIENT_OR_JAVA: Final = "it configures connections to other brokers, or Java"

#: Prefixes of access-control settings. They are rejected, because ignoring a setting could leave the broker
#: unprotected.
SECURITY_PREFIXES: Final = ("authorizer.",)

#: Replication factors and similar settings; 1 is the only valid value.
REPLICATION_FACTORS: Final = (
    "default.replication.factor",
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "transaction.state.log.min.isr",
    "share.coordinator.state.topic.replication.factor",
    "share.coordinator.state.topic.min.isr",
)
