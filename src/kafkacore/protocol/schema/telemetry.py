"""Clients' metrics, pushed to the broker (KIP-714).

Source: Apache Kafka 4.3, ``common/message`` of kafka-clients.
"""

from kafkacore.protocol.schema.declaration import api

APIS = (
    api(
        71,
        "GetTelemetrySubscriptions",
        "Which metrics the broker wants, and how often.",
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
        "Metrics, in OTLP.",
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
