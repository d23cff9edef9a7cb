"""Streams groups, whose tasks the coordinator assigns (KIP-1071).

Source: Apache Kafka 4.3, ``common/message`` of kafka-clients.
"""

from kafkacore.protocol.schema.declaration import api

APIS = (
    api(
        88,
        "StreamsGroupHeartbeat",
        "Join, stay in or leave a streams group. The response has the tasks.",
        versions="0",
        flexible="0+",
        request="""
            GroupId                        string
            MemberId                       string
            MemberEpoch                    int32
            EndpointInformationEpoch       int32
            InstanceId                     string?               = null
            RackId                         string?               = null
            RebalanceTimeoutMs             int32                 = -1
            Topology                       Topology?             = null
              Epoch                        int32
              Subtopologies                []Subtopology
                SubtopologyId              string
                SourceTopics               []string
                SourceTopicRegex           []string
                StateChangelogTopics       []TopicInfo
                RepartitionSinkTopics      []string
                RepartitionSourceTopics    []TopicInfo
                CopartitionGroups          []CopartitionGroup
                  SourceTopics             []int16
                  SourceTopicRegex         []int16
                  RepartitionSourceTopics  []int16
            ActiveTasks                    []TaskIds?            = null
            StandbyTasks                   []TaskIds?            = null
            WarmupTasks                    []TaskIds?            = null
            ProcessId                      string?               = null
            UserEndpoint                   Endpoint?             = null
            ClientTags                     []KeyValue?           = null
            TaskOffsets                    []TaskOffset?         = null
            TaskEndOffsets                 []TaskOffset?         = null
            ShutdownApplication            bool
            struct KeyValue
              Key                          string
              Value                        string
            struct TopicInfo
              Name                         string
              Partitions                   int32
              ReplicationFactor            int16
              TopicConfigs                 []KeyValue
            struct Endpoint
              Host                         string
              Port                         uint16
            struct TaskOffset
              SubtopologyId                string
              Partition                    int32
              Offset                       int64
            struct TaskIds
              SubtopologyId                string
              Partitions                   []int32
        """,
        response="""
            ThrottleTimeMs            int32
            ErrorCode                 int16
            ErrorMessage              string?                    = null
            MemberId                  string
            MemberEpoch               int32
            HeartbeatIntervalMs       int32
            AcceptableRecoveryLag     int32
            TaskOffsetIntervalMs      int32
            Status                    []Status?
            ActiveTasks               []TaskIds?                 = null
            StandbyTasks              []TaskIds?                 = null
            WarmupTasks               []TaskIds?                 = null
            EndpointInformationEpoch  int32
            PartitionsByUserEndpoint  []EndpointToPartitions?    = null
              UserEndpoint            Endpoint
              ActivePartitions        []TopicPartition
              StandbyPartitions       []TopicPartition
            struct Status
              StatusCode              int8
              StatusDetail            string
            struct TopicPartition
              Topic                   string
              Partitions              []int32
            struct TaskIds
              SubtopologyId           string
              Partitions              []int32
            struct Endpoint
              Host                    string
              Port                    uint16
        """,
    ),
    api(
        89,
        "StreamsGroupDescribe",
        "Describe the state, topology, members and tasks of streams groups.",
        versions="0",
        flexible="0+",
        request="""
            GroupIds                     []string
            IncludeAuthorizedOperations  bool
        """,
        response="""
            ThrottleTimeMs                 int32
            Groups                         []DescribedGroup
              ErrorCode                    int16
              ErrorMessage                 string?             = null
              GroupId                      string
              GroupState                   string
              GroupEpoch                   int32
              AssignmentEpoch              int32
              Topology                     Topology?           = null
                Epoch                      int32
                Subtopologies              []Subtopology?      = null
                  SubtopologyId            string
                  SourceTopics             []string
                  RepartitionSinkTopics    []string
                  StateChangelogTopics     []TopicInfo
                  RepartitionSourceTopics  []TopicInfo
              Members                      []Member
                MemberId                   string
                MemberEpoch                int32
                InstanceId                 string?             = null
                RackId                     string?             = null
                ClientId                   string
                ClientHost                 string
                TopologyEpoch              int32
                ProcessId                  string
                UserEndpoint               Endpoint?           = null
                ClientTags                 []KeyValue
                TaskOffsets                []TaskOffset
                TaskEndOffsets             []TaskOffset
                Assignment                 Assignment
                TargetAssignment           Assignment
                IsClassic                  bool
              AuthorizedOperations         int32               = -2147483648
            struct Endpoint
              Host                         string
              Port                         uint16
            struct TaskOffset
              SubtopologyId                string
              Partition                    int32
              Offset                       int64
            struct Assignment
              ActiveTasks                  []TaskIds
              StandbyTasks                 []TaskIds
              WarmupTasks                  []TaskIds
            struct TaskIds
              SubtopologyId                string
              Partitions                   []int32
            struct KeyValue
              Key                          string
              Value                        string
            struct TopicInfo
              Name                         string
              Partitions                   int32
              ReplicationFactor            int16
              TopicConfigs                 []KeyValue
        """,
    ),
)
