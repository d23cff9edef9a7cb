"""Headers, and messages that live inside of records and of other messages.

Source: Apache Kafka 4.3, ``common/message`` of kafka-clients, where no other is named. Each entry becomes
one generated module.
"""

from kafkacore.protocol.schema.declaration import message

MODULES = {
    # What precedes every request and response.
    "headers": (
        message(
            "RequestHeader",
            """
                RequestApiKey           int16
                RequestApiVersion       int16
                CorrelationId           int32
                ClientId                string?     1+  inflexible
            """,
            versions="1-2",
            flexible="2+",
            about="Precedes every request; version 2 before flexible requests.",
        ),
        message(
            "ResponseHeader",
            """
                CorrelationId           int32
            """,
            versions="0-1",
            flexible="1+",
            about="Precedes every response; version 1 before flexible ones, except to ApiVersions.",
        ),
    ),
    # What consumers of one group tell each other through JoinGroup and SyncGroup.
    "consumer_protocol": (
        message(
            "ConsumerProtocolSubscription",
            """
                Topics                  []string
                UserData                bytes?                = null zero-copy
                OwnedPartitions         []TopicPartition  1+  ignorable
                  Topic                 string            1+  key
                  Partitions            []int32           1+
                GenerationId            int32             2+  = -1 ignorable
                RackId                  string?           3+  = null ignorable
            """,
            versions="0-3",
            flexible="none",
            about="Metadata of a member in JoinGroup: the topics it wants and what it owns.",
        ),
        message(
            "ConsumerProtocolAssignment",
            """
                AssignedPartitions      []TopicPartition
                  Topic                 string              key
                  Partitions            []int32
                UserData                bytes?              = null zero-copy
            """,
            versions="0-3",
            flexible="none",
            about="Assignment of a member in SyncGroup.",
        ),
    ),
    # Keys and values of ``__consumer_offsets``; an int16 before a key says which of them it is, one before a
    # value its version. Source: Apache Kafka 4.3, ``common/message`` of kafka-group-coordinator.
    "group_records": (
        message(
            "LegacyOffsetCommitKey",
            """
                group                   string
                topic                   string
                partition               int32
            """,
            versions="0",
            flexible="none",
            about="Whose offset it is, as brokers before 0.9 wrote it.",
        ),
        message(
            "LegacyOffsetCommitValue",
            """
                offset                  int64
                metadata                string
                commitTimestamp         int64
            """,
            versions="0",
            flexible="none",
            about="A committed offset, as brokers before 0.9 wrote it.",
        ),
        message(
            "OffsetCommitKey",
            """
                group                   string
                topic                   string
                partition               int32
            """,
            versions="0",
            flexible="none",
            about="Whose offset it is.",
        ),
        message(
            "OffsetCommitValue",
            """
                offset                  int64
                leaderEpoch             int32       3+  = -1 ignorable
                metadata                string
                commitTimestamp         int64
                expireTimestamp         int64       1   = -1 ignorable
                topicId                 uuid        4+  tag 0 ignorable
            """,
            versions="0-4",
            flexible="4+",
            about="A committed offset.",
        ),
        message(
            "GroupMetadataKey",
            """
                group                   string
            """,
            versions="0",
            flexible="none",
            about="Which classic group it is.",
        ),
        message(
            "GroupMetadataValue",
            """
                protocolType            string
                generation              int32
                protocol                string?
                leader                  string?
                currentStateTimestamp   int64            2+  = -1 ignorable
                members                 []MemberMetadata
                struct MemberMetadata
                  memberId              string
                  groupInstanceId       string?          3+  = null ignorable
                  clientId              string
                  clientHost            string
                  rebalanceTimeout      int32            1+  = -1 ignorable
                  sessionTimeout        int32
                  subscription          bytes
                  assignment            bytes
            """,
            versions="0-4",
            flexible="4+",
            about="A generation of a classic group: its members and what each has been assigned.",
        ),
    ),
    # Keys and values of control records, and of the metadata log's own records.
    "control_records": (
        message(
            "ControlRecordTypeSchema",
            """
                Type                    int16
            """,
            versions="0",
            flexible="none",
            about="Key of a control record.",
        ),
        message(
            "EndTxnMarker",
            """
                CoordinatorEpoch        int32
            """,
            versions="0",
            flexible="none",
            about="Value of the control record that ends a transaction.",
        ),
        message(
            "LeaderChangeMessage",
            """
                Version                 int16
                LeaderId                int32
                Voters                  []Voter
                GrantingVoters          []Voter
                struct Voter
                  VoterId               int32
                  VoterDirectoryId      uuid        1+
            """,
            versions="0-1",
            flexible="0+",
            about="Value of the control record with which a Raft leader begins its epoch.",
        ),
        message(
            "SnapshotHeaderRecord",
            """
                Version                    int16
                LastContainedLogTimestamp  int64
            """,
            versions="0",
            flexible="0+",
            about="First record of a snapshot.",
        ),
        message(
            "SnapshotFooterRecord",
            """
                Version                 int16
            """,
            versions="0",
            flexible="0+",
            about="Last record of a snapshot.",
        ),
        message(
            "KRaftVersionRecord",
            """
                Version                 int16
                KRaftVersion            int16
            """,
            versions="0",
            flexible="0+",
            about="Version of the Raft protocol.",
        ),
        message(
            "VotersRecord",
            """
                Version                  int16
                Voters                   []Voter
                  VoterId                int32
                  VoterDirectoryId       uuid
                  Endpoints              []Endpoint
                    Name                 string                 key
                    Host                 string
                    Port                 uint16
                  KRaftVersionFeature    KRaftVersionFeature
                    MinSupportedVersion  int16
                    MaxSupportedVersion  int16
            """,
            versions="0",
            flexible="0+",
            about="The voters of the Raft quorum.",
        ),
    ),
    # A principal, as brokers forward it to each other in Envelope.
    "principal": (
        message(
            "DefaultPrincipalData",
            """
                Type                    string
                Name                    string
                TokenAuthenticated      bool
            """,
            versions="0",
            flexible="0+",
            about="Type, name and token origin of a principal.",
        ),
    ),
}
