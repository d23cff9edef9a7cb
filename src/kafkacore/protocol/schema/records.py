"""Writing and reading of records, and lookup of offsets.

Source: Apache Kafka 4.3, ``common/message`` of kafka-clients.
"""

from kafkacore.protocol.schema.declaration import api

APIS = (
    api(
        0,
        "Produce",
        "Append record batches to partitions.",
        versions="3-13",
        flexible="9+",
        request="""
            TransactionalId         string?                 3+    = null
            Acks                    int16
            TimeoutMs               int32
            TopicData               []TopicProduceData
              Name                  string                  0-12  key ignorable
              TopicId               uuid                    13+   key ignorable
              PartitionData         []PartitionProduceData
                Index               int32
                Records             records?
        """,
        response="""
            Responses                     []TopicProduceResponse
              Name                        string                       0-12  key ignorable
              TopicId                     uuid                         13+   key ignorable
              PartitionResponses          []PartitionProduceResponse
                Index                     int32
                ErrorCode                 int16
                BaseOffset                int64
                LogAppendTimeMs           int64                        2+    = -1 ignorable
                LogStartOffset            int64                        5+    = -1 ignorable
                RecordErrors              []BatchIndexAndErrorMessage  8+    ignorable
                  BatchIndex              int32                        8+
                  BatchIndexErrorMessage  string?                      8+    = null
                ErrorMessage              string?                      8+    = null ignorable
                CurrentLeader             LeaderIdAndEpoch             10+   tag 0
                  LeaderId                int32                        10+   = -1
                  LeaderEpoch             int32                        10+   = -1
            ThrottleTimeMs                int32                        1+    ignorable
            NodeEndpoints                 []NodeEndpoint               10+   tag 0
              NodeId                      int32                        10+   key
              Host                        string                       10+
              Port                        int32                        10+
              Rack                        string?                      10+   = null
        """,
    ),
    api(
        1,
        "Fetch",
        "Read record batches from partitions. Followers use the same request to replicate.",
        versions="4-18",
        flexible="12+",
        request="""
            ClusterId               string?           12+   = null tag 0 ignorable
            ReplicaId               int32             0-14  = -1
            ReplicaState            ReplicaState      15+   tag 1
              ReplicaId             int32             15+   = -1
              ReplicaEpoch          int64             15+   = -1
            MaxWaitMs               int32
            MinBytes                int32
            MaxBytes                int32             3+    = 0x7fffffff ignorable
            IsolationLevel          int8              4+    ignorable
            SessionId               int32             7+    ignorable
            SessionEpoch            int32             7+    = -1 ignorable
            Topics                  []FetchTopic
              Topic                 string            0-12  ignorable
              TopicId               uuid              13+   ignorable
              Partitions            []FetchPartition
                Partition           int32
                CurrentLeaderEpoch  int32             9+    = -1 ignorable
                FetchOffset         int64
                LastFetchedEpoch    int32             12+   = -1
                LogStartOffset      int64             5+    = -1 ignorable
                PartitionMaxBytes   int32
                ReplicaDirectoryId  uuid              17+   tag 0 ignorable
                HighWatermark       int64             18+   = 9223372036854775807 tag 1 ignorable
            ForgottenTopicsData     []ForgottenTopic  7+
              Topic                 string            7-12  ignorable
              TopicId               uuid              13+   ignorable
              Partitions            []int32           7+
            RackId                  string            11+   ignorable
        """,
        response="""
            ThrottleTimeMs            int32                     1+    ignorable
            ErrorCode                 int16                     7+    ignorable
            SessionId                 int32                     7+
            Responses                 []FetchableTopicResponse
              Topic                   string                    0-12  ignorable
              TopicId                 uuid                      13+   ignorable
              Partitions              []PartitionData
                PartitionIndex        int32
                ErrorCode             int16
                HighWatermark         int64
                LastStableOffset      int64                     4+    = -1 ignorable
                LogStartOffset        int64                     5+    = -1 ignorable
                DivergingEpoch        EpochEndOffset            12+   tag 0
                  Epoch               int32                     12+   = -1
                  EndOffset           int64                     12+   = -1
                CurrentLeader         LeaderIdAndEpoch          12+   tag 1
                  LeaderId            int32                     12+   = -1
                  LeaderEpoch         int32                     12+   = -1
                SnapshotId            SnapshotId                12+   tag 2
                  EndOffset           int64                           = -1
                  Epoch               int32                           = -1
                AbortedTransactions   []AbortedTransaction?     4+    ignorable
                  ProducerId          int64                     4+
                  FirstOffset         int64                     4+
                PreferredReadReplica  int32                     11+   = -1
                Records               records?
            NodeEndpoints             []NodeEndpoint            16+   tag 0
              NodeId                  int32                     16+   key
              Host                    string                    16+
              Port                    int32                     16+
              Rack                    string?                   16+   = null
        """,
    ),
    api(
        2,
        "ListOffsets",
        "Find offsets by timestamp, or the earliest and latest offsets.",
        versions="1-11",
        flexible="6+",
        request="""
            ReplicaId               int32
            IsolationLevel          int8                    2+
            Topics                  []ListOffsetsTopic
              Name                  string
              Partitions            []ListOffsetsPartition
                PartitionIndex      int32
                CurrentLeaderEpoch  int32                   4+   = -1 ignorable
                Timestamp           int64
            TimeoutMs               int32                   10+  ignorable
        """,
        response="""
            ThrottleTimeMs          int32                           2+  ignorable
            Topics                  []ListOffsetsTopicResponse
              Name                  string
              Partitions            []ListOffsetsPartitionResponse
                PartitionIndex      int32
                ErrorCode           int16
                Timestamp           int64                           1+  = -1
                Offset              int64                           1+  = -1
                LeaderEpoch         int32                           4+  = -1
        """,
    ),
    api(
        23,
        "OffsetForLeaderEpoch",
        "Find the end offset of a leader epoch, to detect log truncation (KIP-101, KIP-320).",
        versions="2-4",
        flexible="4+",
        request="""
            ReplicaId               int32                       3+  = -2 ignorable
            Topics                  []OffsetForLeaderTopic
              Topic                 string                          key
              Partitions            []OffsetForLeaderPartition
                Partition           int32
                CurrentLeaderEpoch  int32                       2+  = -1 ignorable
                LeaderEpoch         int32
        """,
        response="""
            ThrottleTimeMs          int32                         2+  ignorable
            Topics                  []OffsetForLeaderTopicResult
              Topic                 string                            key
              Partitions            []EpochEndOffset
                ErrorCode           int16
                Partition           int32
                LeaderEpoch         int32                         1+  = -1 ignorable
                EndOffset           int64                             = -1
        """,
    ),
    api(
        21,
        "DeleteRecords",
        "Delete records by advancing the log start offset of partitions (KIP-107).",
        versions="0-2",
        flexible="2+",
        request="""
            Topics                  []DeleteRecordsTopic
              Name                  string
              Partitions            []DeleteRecordsPartition
                PartitionIndex      int32
                Offset              int64
            TimeoutMs               int32
        """,
        response="""
            ThrottleTimeMs          int32
            Topics                  []DeleteRecordsTopicResult
              Name                  string                            key
              Partitions            []DeleteRecordsPartitionResult
                PartitionIndex      int32                             key
                LowWatermark        int64
                ErrorCode           int16
        """,
    ),
)
