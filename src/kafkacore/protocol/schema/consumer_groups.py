"""Consumer groups, whose partitions the coordinator assigns (KIP-848).

Source: Apache Kafka 4.3, ``common/message`` of kafka-clients.
"""

from kafkacore.protocol.schema.declaration import api

APIS = (
    api(
        68,
        "ConsumerGroupHeartbeat",
        "Join, stay in or leave a consumer group. The response has the assignment.",
        versions="0-1",
        flexible="0+",
        request="""
            GroupId                 string
            MemberId                string
            MemberEpoch             int32
            InstanceId              string?                 = null
            RackId                  string?                 = null
            RebalanceTimeoutMs      int32                   = -1
            SubscribedTopicNames    []string?               = null
            SubscribedTopicRegex    string?             1+  = null
            ServerAssignor          string?                 = null
            TopicPartitions         []TopicPartitions?      = null
              TopicId               uuid
              Partitions            []int32
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
        69,
        "ConsumerGroupDescribe",
        "Describe the state, members and assignments of consumer groups.",
        versions="0-1",
        flexible="0+",
        request="""
            GroupIds                     []string
            IncludeAuthorizedOperations  bool
        """,
        response="""
            ThrottleTimeMs            int32
            Groups                    []DescribedGroup
              ErrorCode               int16
              ErrorMessage            string?                = null
              GroupId                 string
              GroupState              string
              GroupEpoch              int32
              AssignmentEpoch         int32
              AssignorName            string
              Members                 []Member
                MemberId              string
                InstanceId            string?                = null
                RackId                string?                = null
                MemberEpoch           int32
                ClientId              string
                ClientHost            string
                SubscribedTopicNames  []string
                SubscribedTopicRegex  string?                = null
                Assignment            Assignment
                TargetAssignment      Assignment
                MemberType            int8               1+  = -1 ignorable
              AuthorizedOperations    int32                  = -2147483648
            struct TopicPartitions
              TopicId                 uuid
              TopicName               string
              Partitions              []int32
            struct Assignment
              TopicPartitions         []TopicPartitions
        """,
    ),
)
