"""Records of the cluster's metadata log that this broker writes, or reads in folders of Apache Kafka.

Source: ``common/metadata`` of kafka-metadata in Apache Kafka 4.3. The code that frames the records defines
their type numbers (``MetadataRecordType``).
"""

from kafkacore.protocol.schema.declaration import message

MODULES = {
    "metadata_records": (
        message(
            "ConfigRecord",
            """
                ResourceType            int8
                ResourceName            string
                Name                    string
                Value                   string?
            """,
            versions="0",
            flexible="0+",
            about="A changed configuration value of a resource. A null value removes the configuration.",
        ),
        message(
            "FeatureLevelRecord",
            """
                Name                    string
                FeatureLevel            int16
            """,
            versions="0",
            flexible="0+",
            about="The finalized level of a feature.",
        ),
        message(
            "UserScramCredentialRecord",
            """
                Name                    string
                Mechanism               int8
                Salt                    bytes
                StoredKey               bytes
                ServerKey               bytes
                Iterations              int32
            """,
            versions="0",
            flexible="0+",
            about="SCRAM credential of a user.",
        ),
        message(
            "RemoveUserScramCredentialRecord",
            """
                Name                    string
                Mechanism               int8
            """,
            versions="0",
            flexible="0+",
            about="Removal of a user's credential of one SCRAM mechanism.",
        ),
        message(
            "ClientQuotaRecord",
            """
                Entity                  []EntityData
                  EntityType            string
                  EntityName            string?
                Key                     string
                Value                   float64
                Remove                  bool
            """,
            versions="0",
            flexible="0+",
            about="A quota of an entity that was set or removed.",
        ),
        message(
            "AccessControlEntryRecord",
            """
                Id                      uuid
                ResourceType            int8
                ResourceName            string
                PatternType             int8
                Principal               string
                Host                    string
                Operation               int8
                PermissionType          int8
            """,
            versions="0",
            flexible="0+",
            about="An access control entry.",
        ),
        message(
            "RemoveAccessControlEntryRecord",
            """
                Id                      uuid
            """,
            versions="0",
            flexible="0+",
            about="Removal of an access control entry.",
        ),
    ),
    "partition_records": (
        message(
            "PartitionRecord",
            """
                PartitionId             int32               = -1
                TopicId                 uuid
                Replicas                []int32
                Isr                     []int32
                RemovingReplicas        []int32
                AddingReplicas          []int32
                Leader                  int32               = -1
                LeaderRecoveryState     int8                tag 0
                LeaderEpoch             int32               = -1
                PartitionEpoch          int32               = -1
                Directories             []uuid      1+
                EligibleLeaderReplicas  []int32?    2+      = null tag 1
                LastKnownElr            []int32?    2+      = null tag 2
            """,
            versions="0-2",
            flexible="0+",
            about="The state of a partition.",
        ),
        message(
            "PartitionChangeRecord",
            """
                PartitionId             int32               = -1
                TopicId                 uuid
                Isr                     []int32?            = null tag 0
                Leader                  int32               = -2 tag 1
                Replicas                []int32?            = null tag 2
                RemovingReplicas        []int32?            = null tag 3
                AddingReplicas          []int32?            = null tag 4
                LeaderRecoveryState     int8                = -1 tag 5
                Directories             []uuid?     1+      = null tag 8
                EligibleLeaderReplicas  []int32?    2+      = null tag 6
                LastKnownElr            []int32?    2+      = null tag 7
            """,
            versions="0-2",
            flexible="0+",
            about="A change of a partition. The leader and its epoch are the same if the leader is -2.",
        ),
    ),
}
