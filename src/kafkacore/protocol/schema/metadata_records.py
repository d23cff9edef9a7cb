"""Records of the cluster's metadata log: those that this broker keeps.

Source: Apache Kafka 4.3, ``common/metadata`` of kafka-metadata. The numbers of the records
(``MetadataRecordType``) are with whoever frames them.
"""

from kafkacore.protocol.schema.declaration import message

MODULES = {
    "metadata_records": (
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
            about="What a SCRAM password of a user is checked by.",
        ),
        message(
            "RemoveUserScramCredentialRecord",
            """
                Name                    string
                Mechanism               int8
            """,
            versions="0",
            flexible="0+",
            about="A user's credential of one mechanism is gone.",
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
            about="One limit of a quota's entity, set or removed.",
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
            about="An access control entry is gone.",
        ),
    ),
}
