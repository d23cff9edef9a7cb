"""API versions that Kafka 4 removed, but that the embedded broker still serves to old consumers.

They are separate messages, so that kafkacore's clients do not offer these versions. Source: the fields that
these versions have in ``common/message`` of kafka-clients in Apache Kafka 3.9. Each entry becomes one
generated module.
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
            about="Fetch request of clients of Kafka 0.8 to 0.10, which use message format 0 or 1.",
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
            about="Response with messages of format 0 (up to version 1) or format 1.",
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
            about="ListOffsets request of clients of Kafka 0.8 to 0.10.0.",
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
            about="Response with offsets, the newest first.",
        ),
    ),
}
