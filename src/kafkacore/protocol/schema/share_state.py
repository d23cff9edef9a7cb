"""APIs with which brokers read and write the state of share groups (KIP-932).

Source: Apache Kafka 4.3, ``common/message`` of kafka-clients.
"""

from kafkacore.protocol.schema.declaration import api

APIS = (
    api(
        83,
        "InitializeShareGroupState",
        "Initialize the state of share partitions.",
        versions="0",
        flexible="0+",
        request="""
            GroupId                 string
            Topics                  []InitializeStateData
              TopicId               uuid
              Partitions            []PartitionData
                Partition           int32
                StateEpoch          int32
                StartOffset         int64
        """,
        response="""
            Results                 []InitializeStateResult
              TopicId               uuid
              Partitions            []PartitionResult
                Partition           int32
                ErrorCode           int16
                ErrorMessage        string?                    = null
        """,
    ),
    api(
        84,
        "ReadShareGroupState",
        "Read the state of share partitions.",
        versions="0",
        flexible="0+",
        request="""
            GroupId                 string
            Topics                  []ReadStateData
              TopicId               uuid
              Partitions            []PartitionData
                Partition           int32
                LeaderEpoch         int32
        """,
        response="""
            Results                 []ReadStateResult
              TopicId               uuid
              Partitions            []PartitionResult
                Partition           int32
                ErrorCode           int16
                ErrorMessage        string?              = null
                StateEpoch          int32
                StartOffset         int64
                StateBatches        []StateBatch
                  FirstOffset       int64
                  LastOffset        int64
                  DeliveryState     int8
                  DeliveryCount     int16
        """,
    ),
    api(
        85,
        "WriteShareGroupState",
        "Write the state of share partitions.",
        versions="0-1",
        flexible="0+",
        request="""
            GroupId                    string
            Topics                     []WriteStateData
              TopicId                  uuid
              Partitions               []PartitionData
                Partition              int32
                StateEpoch             int32
                LeaderEpoch            int32
                StartOffset            int64
                DeliveryCompleteCount  int32             1+  = -1 ignorable
                StateBatches           []StateBatch
                  FirstOffset          int64
                  LastOffset           int64
                  DeliveryState        int8
                  DeliveryCount        int16
        """,
        response="""
            Results                 []WriteStateResult
              TopicId               uuid
              Partitions            []PartitionResult
                Partition           int32
                ErrorCode           int16
                ErrorMessage        string?               = null
        """,
    ),
    api(
        86,
        "DeleteShareGroupState",
        "Delete the state of share partitions.",
        versions="0",
        flexible="0+",
        request="""
            GroupId                 string
            Topics                  []DeleteStateData
              TopicId               uuid
              Partitions            []PartitionData
                Partition           int32
        """,
        response="""
            Results                 []DeleteStateResult
              TopicId               uuid
              Partitions            []PartitionResult
                Partition           int32
                ErrorCode           int16
                ErrorMessage        string?                = null
        """,
    ),
    api(
        87,
        "ReadShareGroupStateSummary",
        "Read the start offsets and epochs of share partitions.",
        versions="0-1",
        flexible="0+",
        request="""
            GroupId                 string
            Topics                  []ReadStateSummaryData
              TopicId               uuid
              Partitions            []PartitionData
                Partition           int32
                LeaderEpoch         int32
        """,
        response="""
            Results                    []ReadStateSummaryResult
              TopicId                  uuid
              Partitions               []PartitionResult
                Partition              int32
                ErrorCode              int16
                ErrorMessage           string?                       = null
                StateEpoch             int32
                LeaderEpoch            int32
                StartOffset            int64
                DeliveryCompleteCount  int32                     1+  = -1 ignorable
        """,
    ),
)
