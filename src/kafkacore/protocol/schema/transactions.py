"""Idempotent and transactional producers (KIP-98, KIP-890).

Source: Apache Kafka 4.3, ``common/message`` of kafka-clients.
"""

from kafkacore.protocol.schema.declaration import api

APIS = (
    api(
        22,
        "InitProducerId",
        "Get a producer id and epoch, and fence older producers with the transactional id.",
        versions="0-6",
        flexible="2+",
        latest_version_unstable=True,
        request="""
            TransactionalId         string?
            TransactionTimeoutMs    int32
            ProducerId              int64       3+  = -1
            ProducerEpoch           int16       3+  = -1
            Enable2Pc               bool        6+
            KeepPreparedTxn         bool        6+
        """,
        response="""
            ThrottleTimeMs           int32           ignorable
            ErrorCode                int16
            ProducerId               int64           = -1
            ProducerEpoch            int16
            OngoingTxnProducerId     int64       6+  = -1
            OngoingTxnProducerEpoch  int16       6+  = -1
        """,
    ),
    api(
        24,
        "AddPartitionsToTxn",
        "Add partitions to transactions.",
        versions="0-5",
        flexible="3+",
        request="""
            Transactions                    []AddPartitionsToTxnTransaction  4+
              TransactionalId               string                           4+   key
              ProducerId                    int64                            4+
              ProducerEpoch                 int16                            4+
              VerifyOnly                    bool                             4+
              Topics                        []AddPartitionsToTxnTopic        4+
            V3AndBelowTransactionalId       string                           0-3
            V3AndBelowProducerId            int64                            0-3
            V3AndBelowProducerEpoch         int16                            0-3
            V3AndBelowTopics                []AddPartitionsToTxnTopic        0-3
            struct AddPartitionsToTxnTopic
              Name                          string                                key
              Partitions                    []int32
        """,
        response="""
            ThrottleTimeMs                            int32
            ErrorCode                                 int16                                4+   ignorable
            ResultsByTransaction                      []AddPartitionsToTxnResult           4+
              TransactionalId                         string                               4+   key
              TopicResults                            []AddPartitionsToTxnTopicResult      4+
            ResultsByTopicV3AndBelow                  []AddPartitionsToTxnTopicResult      0-3
            struct AddPartitionsToTxnTopicResult
              Name                                    string                                    key
              ResultsByPartition                      []AddPartitionsToTxnPartitionResult
            struct AddPartitionsToTxnPartitionResult
              PartitionIndex                          int32                                     key
              PartitionErrorCode                      int16
        """,
    ),
    api(
        25,
        "AddOffsetsToTxn",
        "Add a group's offsets to a transaction.",
        versions="0-4",
        flexible="3+",
        request="""
            TransactionalId         string
            ProducerId              int64
            ProducerEpoch           int16
            GroupId                 string
        """,
        response="""
            ThrottleTimeMs          int32
            ErrorCode               int16
        """,
    ),
    api(
        28,
        "TxnOffsetCommit",
        "Commit offsets of a group within a transaction.",
        versions="0-5",
        flexible="3+",
        request="""
            TransactionalId           string
            GroupId                   string
            ProducerId                int64
            ProducerEpoch             int16
            GenerationId              int32                              3+  = -1
            MemberId                  string                             3+
            GroupInstanceId           string?                            3+  = null
            Topics                    []TxnOffsetCommitRequestTopic
              Name                    string
              Partitions              []TxnOffsetCommitRequestPartition
                PartitionIndex        int32
                CommittedOffset       int64
                CommittedLeaderEpoch  int32                              2+  = -1 ignorable
                CommittedMetadata     string?
        """,
        response="""
            ThrottleTimeMs          int32
            Topics                  []TxnOffsetCommitResponseTopic
              Name                  string
              Partitions            []TxnOffsetCommitResponsePartition
                PartitionIndex      int32
                ErrorCode           int16
        """,
    ),
    api(
        26,
        "EndTxn",
        "Commit or abort a transaction.",
        versions="0-5",
        flexible="3+",
        request="""
            TransactionalId         string
            ProducerId              int64
            ProducerEpoch           int16
            Committed               bool
        """,
        response="""
            ThrottleTimeMs          int32
            ErrorCode               int16
            ProducerId              int64       5+  = -1 ignorable
            ProducerEpoch           int16       5+  = -1 ignorable
        """,
    ),
    api(
        27,
        "WriteTxnMarkers",
        "Write the coordinator's markers to the partitions of ended transactions.",
        versions="1-2",
        flexible="1+",
        request="""
            Markers                 []WritableTxnMarker
              ProducerId            int64
              ProducerEpoch         int16
              TransactionResult     bool
              Topics                []WritableTxnMarkerTopic
                Name                string
                PartitionIndexes    []int32
              CoordinatorEpoch      int32
              TransactionVersion    int8                      2+  ignorable
        """,
        response="""
            Markers                 []WritableTxnMarkerResult
              ProducerId            int64
              Topics                []WritableTxnMarkerTopicResult
                Name                string
                Partitions          []WritableTxnMarkerPartitionResult
                  PartitionIndex    int32
                  ErrorCode         int16
        """,
    ),
    api(
        61,
        "DescribeProducers",
        "Describe the active producers of partitions (KIP-664).",
        versions="0",
        flexible="0+",
        request="""
            Topics                  []TopicRequest
              Name                  string
              PartitionIndexes      []int32
        """,
        response="""
            ThrottleTimeMs               int32
            Topics                       []TopicResponse
              Name                       string
              Partitions                 []PartitionResponse
                PartitionIndex           int32
                ErrorCode                int16
                ErrorMessage             string?                = null
                ActiveProducers          []ProducerState
                  ProducerId             int64
                  ProducerEpoch          int32
                  LastSequence           int32                  = -1
                  LastTimestamp          int64                  = -1
                  CoordinatorEpoch       int32
                  CurrentTxnStartOffset  int64                  = -1
        """,
    ),
    api(
        65,
        "DescribeTransactions",
        "Describe the state of transactions (KIP-664).",
        versions="0",
        flexible="0+",
        request="""
            TransactionalIds        []string
        """,
        response="""
            ThrottleTimeMs            int32
            TransactionStates         []TransactionState
              ErrorCode               int16
              TransactionalId         string
              TransactionState        string
              TransactionTimeoutMs    int32
              TransactionStartTimeMs  int64
              ProducerId              int64
              ProducerEpoch           int16
              Topics                  []TopicData
                Topic                 string                key
                Partitions            []int32
        """,
    ),
    api(
        66,
        "ListTransactions",
        "List the transactions that a broker coordinates (KIP-664).",
        versions="0-2",
        flexible="0+",
        request="""
            StateFilters            []string
            ProducerIdFilters       []int64
            DurationFilter          int64       1+  = -1
            TransactionalIdPattern  string?     2+  = null
        """,
        response="""
            ThrottleTimeMs          int32
            ErrorCode               int16
            UnknownStateFilters     []string
            TransactionStates       []TransactionState
              TransactionalId       string
              ProducerId            int64
              TransactionState      string
        """,
    ),
    api(
        67,
        "AllocateProducerIds",
        "Allocate a block of producer ids to a broker (KIP-730).",
        versions="0",
        flexible="0+",
        request="""
            BrokerId                int32
            BrokerEpoch             int64         = -1
        """,
        response="""
            ThrottleTimeMs          int32
            ErrorCode               int16
            ProducerIdStart         int64
            ProducerIdLen           int32
        """,
    ),
)
