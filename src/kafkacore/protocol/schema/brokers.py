"""Requests of brokers to the controller, and APIs that Kafka 4 removed.

Source: Apache Kafka 4.3, ``common/message`` of kafka-clients.
"""

from kafkacore.protocol.schema.declaration import api

APIS = (
    api(4, "LeaderAndIsr", "Removed in Kafka 4.", versions="none"),
    api(5, "StopReplica", "Removed in Kafka 4.", versions="none"),
    api(6, "UpdateMetadata", "Removed in Kafka 4.", versions="none"),
    api(7, "ControlledShutdown", "Removed in Kafka 4.", versions="none"),
    api(
        58,
        "Envelope",
        "Forward a request to the controller with the principal of its sender (KIP-590).",
        versions="0",
        flexible="0+",
        request="""
            RequestData             bytes         zero-copy
            RequestPrincipal        bytes?
            ClientHostAddress       bytes
        """,
        response="""
            ResponseData            bytes?        = null zero-copy
            ErrorCode               int16
        """,
    ),
    api(
        62,
        "BrokerRegistration",
        "Register a broker with the controller (KIP-631).",
        versions="0-4",
        flexible="0+",
        request="""
            BrokerId                int32
            ClusterId               string
            IncarnationId           uuid
            Listeners               []Listener
              Name                  string          key
              Host                  string
              Port                  uint16
              SecurityProtocol      int16
            Features                []Feature
              Name                  string          key
              MinSupportedVersion   int16
              MaxSupportedVersion   int16
            Rack                    string?
            IsMigratingZkBroker     bool        1+
            LogDirs                 []uuid      2+  ignorable
            PreviousBrokerEpoch     int64       3+  = -1 ignorable
        """,
        response="""
            ThrottleTimeMs          int32
            ErrorCode               int16
            BrokerEpoch             int64         = -1
        """,
    ),
    api(
        63,
        "BrokerHeartbeat",
        "Keep a broker registered, and request to unfence it or to shut it down (KIP-631).",
        versions="0-2",
        flexible="0+",
        request="""
            BrokerId                int32
            BrokerEpoch             int64           = -1
            CurrentMetadataOffset   int64
            WantFence               bool
            WantShutDown            bool
            OfflineLogDirs          []uuid      1+  tag 0
            CordonedLogDirs         []uuid?     2+  = null tag 1
        """,
        response="""
            ThrottleTimeMs          int32
            ErrorCode               int16
            IsCaughtUp              bool
            IsFenced                bool          = true
            ShouldShutDown          bool
        """,
    ),
    api(
        70,
        "ControllerRegistration",
        "Register a controller with the active controller (KIP-919).",
        versions="0",
        flexible="0+",
        request="""
            ControllerId            int32
            IncarnationId           uuid
            ZkMigrationReady        bool
            Listeners               []Listener
              Name                  string        key
              Host                  string
              Port                  uint16
              SecurityProtocol      int16
            Features                []Feature
              Name                  string        key
              MinSupportedVersion   int16
              MaxSupportedVersion   int16
        """,
        response="""
            ThrottleTimeMs          int32
            ErrorCode               int16
            ErrorMessage            string?
        """,
    ),
)
