"""Versions of APIs that Kafka 4 has removed and the embedded broker goes on serving, to read from.

They are messages of their own, so that no client of ours offers to speak them. Source: Apache Kafka 3.9,
``common/message`` of kafka-clients: the fields that these versions have. Each entry becomes one generated
module.
"""

from kafkacore.protocol.schema.declaration import message

MODULES = {
    "old_fetch": (
        message(
            "OldFetchRequest",
            """
                ReplicaId               int32                   = -1
                MaxWaitMs               int32
                MinBytes                int32
                MaxBytes                int32             3     = 0x7fffffff ignorable
                Topics                  []FetchTopic
                  Topic                 string                  ignorable
                  Partitions            []FetchPartition
                    Partition           int32
                    FetchOffset         int64
                    PartitionMaxBytes   int32
            """,
            versions="0-3",
            flexible="none",
            about="Fetch for clients of Kafka 0.8 to 0.10, which know messages of format 0 or 1.",
        ),
        message(
            "OldFetchResponse",
            """
                ThrottleTimeMs            int32                     1-3   ignorable
                Responses                 []FetchableTopicResponse
                  Topic                   string                          ignorable
                  Partitions              []PartitionData
                    PartitionIndex        int32
                    ErrorCode             int16
                    HighWatermark         int64
                    Records               records?
            """,
            versions="0-3",
            flexible="none",
            about="What there is, in messages of format 0 (to version 1) or 1.",
        ),
    ),
    "old_list_offsets": (
        message(
            "OldListOffsetsRequest",
            """
                ReplicaId               int32
                Topics                  []ListOffsetsTopic
                  Name                  string
                  Partitions            []ListOffsetsPartition
                    PartitionIndex      int32
                    Timestamp           int64
                    MaxNumOffsets       int32               = 1
            """,
            versions="0",
            flexible="none",
            about="ListOffsets for clients of Kafka 0.8 to 0.10.0.",
        ),
        message(
            "OldListOffsetsResponse",
            """
                Topics                    []ListOffsetsTopicResponse
                  Name                    string
                  Partitions              []ListOffsetsPartitionResponse
                    PartitionIndex        int32
                    ErrorCode             int16
                    OldStyleOffsets       []int64
            """,
            versions="0",
            flexible="none",
            about="The offsets, the newest first.",
        ),
    ),
}
