"""Brokers to their controller; and what Kafka 4 removed.

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
        "A request forwarded to the controller with the principal who sent it (KIP-590).",
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
        "A broker registers with the controller (KIP-631).",
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
        "A broker is alive; asks to be unfenced or to shut down (KIP-631).",
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
        "A controller registers with the active one (KIP-919).",
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
