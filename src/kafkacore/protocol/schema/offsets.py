"""Committed offsets of groups.

Source: Apache Kafka 4.3, ``common/message`` of kafka-clients.
"""

from kafkacore.protocol.schema.declaration import api

APIS = (
    api(
        8,
        "OffsetCommit",
        "Commit offsets of a group.",
        versions="2-10",
        flexible="8+",
        request="""
            GroupId                    string
            GenerationIdOrMemberEpoch  int32                           1+   = -1 ignorable
            MemberId                   string                          1+   ignorable
            GroupInstanceId            string?                         7+   = null
            RetentionTimeMs            int64                           2-4  = -1 ignorable
            Topics                     []OffsetCommitRequestTopic
              Name                     string                          0-9  ignorable
              TopicId                  uuid                            10+  ignorable
              Partitions               []OffsetCommitRequestPartition
                PartitionIndex         int32
                CommittedOffset        int64
                CommittedLeaderEpoch   int32                           6+   = -1 ignorable
                CommittedMetadata      string?
        """,
        response="""
            ThrottleTimeMs          int32                            3+   ignorable
            Topics                  []OffsetCommitResponseTopic
              Name                  string                           0-9  ignorable
              TopicId               uuid                             10+  ignorable
              Partitions            []OffsetCommitResponsePartition
                PartitionIndex      int32
                ErrorCode           int16
        """,
    ),
    api(
        9,
        "OffsetFetch",
        "Read the committed offsets of groups.",
        versions="1-10",
        flexible="6+",
        request="""
            GroupId                 string                         0-7
            Topics                  []OffsetFetchRequestTopic?2-7  0-7
              Name                  string                         0-7
              PartitionIndexes      []int32                        0-7
            Groups                  []OffsetFetchRequestGroup      8+
              GroupId               string                         8+
              MemberId              string?                        9+   = null ignorable
              MemberEpoch           int32                          9+   = -1 ignorable
              Topics                []OffsetFetchRequestTopics?    8+
                Name                string                         8-9  ignorable
                TopicId             uuid                           10+  ignorable
                PartitionIndexes    []int32                        8+
            RequireStable           bool                           7+
        """,
        response="""
            ThrottleTimeMs              int32                            3+   ignorable
            Topics                      []OffsetFetchResponseTopic       0-7
              Name                      string                           0-7
              Partitions                []OffsetFetchResponsePartition   0-7
                PartitionIndex          int32                            0-7
                CommittedOffset         int64                            0-7
                CommittedLeaderEpoch    int32                            5-7  = -1 ignorable
                Metadata                string?                          0-7
                ErrorCode               int16                            0-7
            ErrorCode                   int16                            2-7  ignorable
            Groups                      []OffsetFetchResponseGroup       8+
              GroupId                   string                           8+
              Topics                    []OffsetFetchResponseTopics      8+
                Name                    string                           8-9  ignorable
                TopicId                 uuid                             10+  ignorable
                Partitions              []OffsetFetchResponsePartitions  8+
                  PartitionIndex        int32                            8+
                  CommittedOffset       int64                            8+
                  CommittedLeaderEpoch  int32                            8+   = -1 ignorable
                  Metadata              string?                          8+
                  ErrorCode             int16                            8+
              ErrorCode                 int16                            8+
        """,
    ),
    api(
        47,
        "OffsetDelete",
        "Delete committed offsets of a group.",
        versions="0",
        request="""
            GroupId                 string
            Topics                  []OffsetDeleteRequestTopic
              Name                  string                            key
              Partitions            []OffsetDeleteRequestPartition
                PartitionIndex      int32
        """,
        response="""
            ErrorCode               int16
            ThrottleTimeMs          int32                              ignorable
            Topics                  []OffsetDeleteResponseTopic
              Name                  string                             key
              Partitions            []OffsetDeleteResponsePartition
                PartitionIndex      int32                              key
                ErrorCode           int16
        """,
    ),
)
