"""Client metrics that are pushed to the broker (KIP-714).

Source: Apache Kafka 4.3, ``common/message`` of kafka-clients.
"""

from kafkacore.protocol.schema.declaration import api

APIS = (
    api(
        71,
        "GetTelemetrySubscriptions",
        "Get the metrics to push, and the push interval.",
        versions="0",
        flexible="0+",
        request="""
            ClientInstanceId        uuid
        """,
        response="""
            ThrottleTimeMs            int32
            ErrorCode                 int16
            ClientInstanceId          uuid
            SubscriptionId            int32
            AcceptedCompressionTypes  []int8
            PushIntervalMs            int32
            TelemetryMaxBytes         int32
            DeltaTemporality          bool
            RequestedMetrics          []string
        """,
    ),
    api(
        72,
        "PushTelemetry",
        "Push metrics in OTLP.",
        versions="0",
        flexible="0+",
        request="""
            ClientInstanceId        uuid
            SubscriptionId          int32
            Terminating             bool
            CompressionType         int8
            Metrics                 bytes         zero-copy
        """,
        response="""
            ThrottleTimeMs          int32
            ErrorCode               int16
        """,
    ),
)
