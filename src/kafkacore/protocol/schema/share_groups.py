"""Share groups: consumers share partitions and acknowledge single records (KIP-932).

Source: Apache Kafka 4.3, ``common/message`` of kafka-clients.
"""

from kafkacore.protocol.schema.declaration import api

APIS = (
    api(
        76,
        "ShareGroupHeartbeat",
        "Join, stay in or leave a share group. The response has the assignment.",
        versions="1",
        flexible="0+",
        request="""
            GroupId                 string
            MemberId                string
            MemberEpoch             int32
            RackId                  string?       = null
            SubscribedTopicNames    []string?     = null
        """,
        response="""
            ThrottleTimeMs          int32
            ErrorCode               int16
            ErrorMessage            string?              = null
            MemberId                string?              = null
            MemberEpoch             int32
            HeartbeatIntervalMs     int32
            Assignment              Assignment?          = null
              TopicPartitions       []TopicPartitions
            struct TopicPartitions
              TopicId               uuid
              Partitions            []int32
        """,
    ),
    api(
        77,
        "ShareGroupDescribe",
        "Describe the state, members and assignments of share groups.",
        versions="1",
        flexible="0+",
        request="""
            GroupIds                     []string
            IncludeAuthorizedOperations  bool
        """,
        response="""
            ThrottleTimeMs            int32
            Groups                    []DescribedGroup
              ErrorCode               int16
              ErrorMessage            string?              = null
              GroupId                 string
              GroupState              string
              GroupEpoch              int32
              AssignmentEpoch         int32
              AssignorName            string
              Members                 []Member
                MemberId              string
                RackId                string?              = null
                MemberEpoch           int32
                ClientId              string
                ClientHost            string
                SubscribedTopicNames  []string
                Assignment            Assignment
              AuthorizedOperations    int32                = -2147483648
            struct TopicPartitions
              TopicId                 uuid
              TopicName               string
              Partitions              []int32
            struct Assignment
              TopicPartitions         []TopicPartitions
        """,
    ),
    api(
        78,
        "ShareFetch",
        "Acquire records for a share group, and acknowledge earlier records.",
        versions="1-2",
        flexible="0+",
        request="""
            GroupId                     string?                     = null
            MemberId                    string?
            ShareSessionEpoch           int32
            MaxWaitMs                   int32
            MinBytes                    int32
            MaxBytes                    int32                       = 0x7fffffff
            MaxRecords                  int32                   1+
            BatchSize                   int32                   1+
            ShareAcquireMode            int8                    2+  ignorable
            IsRenewAck                  bool                    2+
            Topics                      []FetchTopic
              TopicId                   uuid                        key
              Partitions                []FetchPartition
                PartitionIndex          int32                       key
                PartitionMaxBytes       int32                   0
                AcknowledgementBatches  []AcknowledgementBatch
                  FirstOffset           int64
                  LastOffset            int64
                  AcknowledgeTypes      []int8
            ForgottenTopicsData         []ForgottenTopic
              TopicId                   uuid
              Partitions                []int32
        """,
        response="""
            ThrottleTimeMs               int32
            ErrorCode                    int16
            ErrorMessage                 string?                            = null
            AcquisitionLockTimeoutMs     int32                          1+
            Responses                    []ShareFetchableTopicResponse
              TopicId                    uuid                               key
              Partitions                 []PartitionData
                PartitionIndex           int32
                ErrorCode                int16
                ErrorMessage             string?                            = null
                AcknowledgeErrorCode     int16
                AcknowledgeErrorMessage  string?                            = null
                CurrentLeader            LeaderIdAndEpoch
                  LeaderId               int32
                  LeaderEpoch            int32
                Records                  records
                AcquiredRecords          []AcquiredRecords
                  FirstOffset            int64
                  LastOffset             int64
                  DeliveryCount          int16
            NodeEndpoints                []NodeEndpoint
              NodeId                     int32                              key
              Host                       string
              Port                       int32
              Rack                       string?                            = null
        """,
    ),
    api(
        79,
        "ShareAcknowledge",
        "Acknowledge acquired records.",
        versions="1-2",
        flexible="0+",
        request="""
            GroupId                     string?                     = null
            MemberId                    string?
            ShareSessionEpoch           int32
            IsRenewAck                  bool                    2+
            Topics                      []AcknowledgeTopic
              TopicId                   uuid                        key
              Partitions                []AcknowledgePartition
                PartitionIndex          int32                       key
                AcknowledgementBatches  []AcknowledgementBatch
                  FirstOffset           int64
                  LastOffset            int64
                  AcknowledgeTypes      []int8
        """,
        response="""
            ThrottleTimeMs            int32
            ErrorCode                 int16
            ErrorMessage              string?                              = null
            AcquisitionLockTimeoutMs  int32                            2+  ignorable
            Responses                 []ShareAcknowledgeTopicResponse
              TopicId                 uuid                                 key
              Partitions              []PartitionData
                PartitionIndex        int32
                ErrorCode             int16
                ErrorMessage          string?                              = null
                CurrentLeader         LeaderIdAndEpoch
                  LeaderId            int32
                  LeaderEpoch         int32
            NodeEndpoints             []NodeEndpoint
              NodeId                  int32                                key
              Host                    string
              Port                    int32
              Rack                    string?                              = null
        """,
    ),
    api(
        90,
        "DescribeShareGroupOffsets",
        "Describe the start offsets of a share group's partitions.",
        versions="0-1",
        flexible="0+",
        request="""
            Groups                  []DescribeShareGroupOffsetsRequestGroup
              GroupId               string
              Topics                []DescribeShareGroupOffsetsRequestTopic?
                TopicName           string
                Partitions          []int32
        """,
        response="""
            ThrottleTimeMs          int32
            Groups                  []DescribeShareGroupOffsetsResponseGroup
              GroupId               string
              Topics                []DescribeShareGroupOffsetsResponseTopic
                TopicName           string
                TopicId             uuid
                Partitions          []DescribeShareGroupOffsetsResponsePartition
                  PartitionIndex    int32
                  StartOffset       int64
                  LeaderEpoch       int32
                  Lag               int64                                         1+  = -1 ignorable
                  ErrorCode         int16
                  ErrorMessage      string?                                           = null
              ErrorCode             int16
              ErrorMessage          string?                                           = null
        """,
    ),
    api(
        91,
        "AlterShareGroupOffsets",
        "Set the start offsets of a share group's partitions.",
        versions="0",
        flexible="0+",
        request="""
            GroupId                 string
            Topics                  []AlterShareGroupOffsetsRequestTopic
              TopicName             string                                      key
              Partitions            []AlterShareGroupOffsetsRequestPartition
                PartitionIndex      int32
                StartOffset         int64
        """,
        response="""
            ThrottleTimeMs          int32
            ErrorCode               int16
            ErrorMessage            string?                                      = null
            Responses               []AlterShareGroupOffsetsResponseTopic
              TopicName             string                                       key
              TopicId               uuid
              Partitions            []AlterShareGroupOffsetsResponsePartition
                PartitionIndex      int32
                ErrorCode           int16
                ErrorMessage        string?                                      = null
        """,
    ),
    api(
        92,
        "DeleteShareGroupOffsets",
        "Delete the offsets of a share group for topics.",
        versions="0",
        flexible="0+",
        request="""
            GroupId                 string
            Topics                  []DeleteShareGroupOffsetsRequestTopic
              TopicName             string
        """,
        response="""
            ThrottleTimeMs          int32
            ErrorCode               int16
            ErrorMessage            string?                                   = null
            Responses               []DeleteShareGroupOffsetsResponseTopic
              TopicName             string
              TopicId               uuid
              ErrorCode             int16
              ErrorMessage          string?                                   = null
        """,
    ),
)
