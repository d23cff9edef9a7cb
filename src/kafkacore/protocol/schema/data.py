"""Headers, and messages that are stored in records or sent inside other messages.

Source: ``common/message`` of kafka-clients in Apache Kafka 4.3, unless a comment names another source. Each
entry becomes one generated module.
"""

from kafkacore.protocol.schema.declaration import message

MODULES = {
    # Headers of requests and responses.
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
            about="Header of a request. Flexible requests have header version 2.",
        ),
        message(
            "ResponseHeader",
            """
                CorrelationId           int32
            """,
            versions="0-1",
            flexible="1+",
            about="Header of a response. Flexible responses except ApiVersions have header version 1.",
        ),
    ),
    # Metadata and assignments that consumers of a group exchange in JoinGroup and SyncGroup.
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
            about="Metadata of a member in JoinGroup: its subscribed topics and its owned partitions.",
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
    # Key and value of ``__transaction_state``. An int16 before the key gives the version of the key, and an
    # int16 before the value gives the version of the value. Source: ``common/message`` of
    # kafka-transaction-coordinator in Apache Kafka 4.3.
    "transaction_records": (
        message(
            "TransactionLogKey",
            """
                TransactionalId                   string
            """,
            versions="0",
            flexible="none",
            about="Key of a transactional id.",
        ),
        message(
            "TransactionLogValue",
            """
                ProducerId                        int64
                PreviousProducerId                int64                1+  = -1 tag 0
                NextProducerId                    int64                1+  = -1 tag 1
                ProducerEpoch                     int16
                NextProducerEpoch                 int16                1+  = -1 tag 3
                TransactionTimeoutMs              int32
                TransactionStatus                 int8
                TransactionPartitions             []PartitionsSchema?
                  Topic                           string
                  PartitionIds                    []int32
                TransactionLastUpdateTimestampMs  int64
                TransactionStartTimestampMs       int64
                ClientTransactionVersion          int16                1+  = 0 tag 2
            """,
            versions="0-1",
            flexible="1+",
            about="State of the producer with a transactional id.",
        ),
    ),
    # Keys and values of ``__consumer_offsets``. An int16 before a key gives the type of the record, and an
    # int16 before a value gives the version of the value. Source: ``common/message`` of
    # kafka-group-coordinator in Apache Kafka 4.3.
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
            about="Key of a committed offset in the format of brokers before 0.9.",
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
            about="Value of a committed offset in the format of brokers before 0.9.",
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
            about="Key of a committed offset.",
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
            about="Value of a committed offset.",
        ),
        message(
            "GroupMetadataKey",
            """
                group                   string
            """,
            versions="0",
            flexible="none",
            about="Key of a classic group.",
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
            about="Generation of a classic group: its members and their assignments.",
        ),
        message(
            "ConsumerGroupMetadataKey",
            """
                GroupId                 string
            """,
            versions="0",
            flexible="none",
            about="Key of a consumer group.",
        ),
        message(
            "ConsumerGroupMetadataValue",
            """
                Epoch                   int32
                MetadataHash            int64           = 0 tag 0
            """,
            versions="0",
            flexible="0+",
            about="Epoch of a consumer group.",
        ),
        message(
            "ConsumerGroupPartitionMetadataKey",
            """
                GroupId                 string
            """,
            versions="0",
            flexible="none",
            about="Key of the subscribed topics of a consumer group, in Kafka 4.0.",
        ),
        message(
            "ConsumerGroupPartitionMetadataValue",
            """
                Topics                  []TopicMetadata
                  TopicId               uuid
                  TopicName             string
                  NumPartitions         int32
                  PartitionMetadata     []PartitionMetadata
                    Partition           int32
                    Racks               []string
            """,
            versions="0",
            flexible="0+",
            about="Subscribed topics of a consumer group, in Kafka 4.0.",
        ),
        message(
            "ConsumerGroupMemberMetadataKey",
            """
                GroupId                 string
                MemberId                string
            """,
            versions="0",
            flexible="none",
            about="Key of the subscription of a member of a consumer group.",
        ),
        message(
            "ConsumerGroupMemberMetadataValue",
            """
                InstanceId              string?
                RackId                  string?
                ClientId                string
                ClientHost              string
                SubscribedTopicNames    []string
                SubscribedTopicRegex    string?
                RebalanceTimeoutMs      int32           = -1
                ServerAssignor          string?
                ClassicMemberMetadata   ClassicMemberMetadata?  tag 0
                  SessionTimeoutMs      int32
                  SupportedProtocols    []ClassicProtocol
                    Name                string
                    Metadata            bytes
            """,
            versions="0",
            flexible="0+",
            about="Subscription of a member of a consumer group.",
        ),
        message(
            "ConsumerGroupTargetAssignmentMetadataKey",
            """
                GroupId                 string
            """,
            versions="0",
            flexible="none",
            about="Key of the epoch of the target assignment of a consumer group.",
        ),
        message(
            "ConsumerGroupTargetAssignmentMetadataValue",
            """
                AssignmentEpoch         int32
                AssignmentTimestamp     int64           = 0 tag 0 ignorable
            """,
            versions="0",
            flexible="0+",
            about="Epoch of the target assignment of a consumer group.",
        ),
        message(
            "ConsumerGroupTargetAssignmentMemberKey",
            """
                GroupId                 string
                MemberId                string
            """,
            versions="0",
            flexible="none",
            about="Key of the target assignment of a member of a consumer group.",
        ),
        message(
            "ConsumerGroupTargetAssignmentMemberValue",
            """
                TopicPartitions         []TopicPartition
                  TopicId               uuid
                  Partitions            []int32
            """,
            versions="0",
            flexible="0+",
            about="Target assignment of a member of a consumer group.",
        ),
        message(
            "ConsumerGroupCurrentMemberAssignmentKey",
            """
                GroupId                 string
                MemberId                string
            """,
            versions="0",
            flexible="none",
            about="Key of the partitions that a member of a consumer group owns.",
        ),
        message(
            "ConsumerGroupCurrentMemberAssignmentValue",
            """
                MemberEpoch             int32
                PreviousMemberEpoch     int32
                State                   int8
                AssignedPartitions      []TopicPartitions
                PartitionsPendingRevocation []TopicPartitions
                struct TopicPartitions
                  TopicId               uuid
                  Partitions            []int32
                  AssignmentEpochs      []int32?        tag 0
            """,
            versions="0",
            flexible="0+",
            about="Partitions that a member of a consumer group owns, and the member's epoch.",
        ),
        message(
            "ConsumerGroupRegularExpressionKey",
            """
                GroupId                 string
                RegularExpression       string
            """,
            versions="0",
            flexible="none",
            about="Key of a regular expression of a consumer group.",
        ),
        message(
            "ConsumerGroupRegularExpressionValue",
            """
                Topics                  []string
                Version                 int64
                Timestamp               int64
            """,
            versions="0",
            flexible="0+",
            about="Topics that match a regular expression of a consumer group.",
        ),
    ),
    # Keys and values of control records: of transactions, and of the metadata log.
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
            about="Value of the control record that a Raft leader writes at the start of its epoch.",
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
    # A principal in the form in which brokers forward it in Envelope requests.
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
