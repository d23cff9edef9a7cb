"""Placement of replicas and election of leaders.

Source: Apache Kafka 4.3, ``common/message`` of kafka-clients.
"""

from kafkacore.protocol.schema.declaration import api

APIS = (
    api(
        43,
        "ElectLeaders",
        "Elect leaders of partitions, either the preferred replica or an unclean one.",
        versions="0-2",
        flexible="2+",
        request="""
            ElectionType            int8                1+
            TopicPartitions         []TopicPartitions?
              Topic                 string                  key
              Partitions            []int32
            TimeoutMs               int32                   = 60000
        """,
        response="""
            ThrottleTimeMs          int32
            ErrorCode               int16                    1+
            ReplicaElectionResults  []ReplicaElectionResult
              Topic                 string
              PartitionResult       []PartitionResult
                PartitionId         int32
                ErrorCode           int16
                ErrorMessage        string?
        """,
    ),
    api(
        45,
        "AlterPartitionReassignments",
        "Start or cancel the reassignment of partitions to other brokers (KIP-455).",
        versions="0-1",
        flexible="0+",
        request="""
            TimeoutMs                     int32                        = 60000
            AllowReplicationFactorChange  bool                     1+  = true
            Topics                        []ReassignableTopic
              Name                        string
              Partitions                  []ReassignablePartition
                PartitionIndex            int32
                Replicas                  []int32?                     = null
        """,
        response="""
            ThrottleTimeMs                int32
            AllowReplicationFactorChange  bool                             1+  = true ignorable
            ErrorCode                     int16
            ErrorMessage                  string?
            Responses                     []ReassignableTopicResponse
              Name                        string
              Partitions                  []ReassignablePartitionResponse
                PartitionIndex            int32
                ErrorCode                 int16
                ErrorMessage              string?
        """,
    ),
    api(
        46,
        "ListPartitionReassignments",
        "List the partitions that are being reassigned (KIP-455).",
        versions="0",
        flexible="0+",
        request="""
            TimeoutMs               int32                                  = 60000
            Topics                  []ListPartitionReassignmentsTopics?    = null
              Name                  string
              PartitionIndexes      []int32
        """,
        response="""
            ThrottleTimeMs          int32
            ErrorCode               int16
            ErrorMessage            string?
            Topics                  []OngoingTopicReassignment
              Name                  string
              Partitions            []OngoingPartitionReassignment
                PartitionIndex      int32
                Replicas            []int32
                AddingReplicas      []int32
                RemovingReplicas    []int32
        """,
    ),
    api(
        34,
        "AlterReplicaLogDirs",
        "Move replicas between the log directories of a broker (KIP-113).",
        versions="1-2",
        flexible="2+",
        request="""
            Dirs                    []AlterReplicaLogDir
              Path                  string                       key
              Topics                []AlterReplicaLogDirTopic
                Name                string                       key
                Partitions          []int32
        """,
        response="""
            ThrottleTimeMs          int32
            Results                 []AlterReplicaLogDirTopicResult
              TopicName             string
              Partitions            []AlterReplicaLogDirPartitionResult
                PartitionIndex      int32
                ErrorCode           int16
        """,
    ),
    api(
        35,
        "DescribeLogDirs",
        "Describe the log directories of a broker and the sizes of their partitions (KIP-113).",
        versions="1-5",
        flexible="2+",
        request="""
            Topics                  []DescribableLogDirTopic?
              Topic                 string                       key
              Partitions            []int32
        """,
        response="""
            ThrottleTimeMs          int32
            ErrorCode               int16                       3+  ignorable
            Results                 []DescribeLogDirsResult
              ErrorCode             int16
              LogDir                string
              Topics                []DescribeLogDirsTopic
                Name                string
                Partitions          []DescribeLogDirsPartition
                  PartitionIndex    int32
                  PartitionSize     int64
                  OffsetLag         int64
                  IsFutureKey       bool
              TotalBytes            int64                       4+  = -1 ignorable
              UsableBytes           int64                       4+  = -1 ignorable
              IsCordoned            bool                        5+  ignorable
        """,
    ),
    api(
        73,
        "AssignReplicasToDirs",
        "Report the log directory of each replica to the controller (KIP-858).",
        versions="0",
        flexible="0+",
        request="""
            BrokerId                int32
            BrokerEpoch             int64              = -1
            Directories             []DirectoryData
              Id                    uuid
              Topics                []TopicData
                TopicId             uuid
                Partitions          []PartitionData
                  PartitionIndex    int32
        """,
        response="""
            ThrottleTimeMs          int32
            ErrorCode               int16
            Directories             []DirectoryData
              Id                    uuid
              Topics                []TopicData
                TopicId             uuid
                Partitions          []PartitionData
                  PartitionIndex    int32
                  ErrorCode         int16
        """,
    ),
    api(
        56,
        "AlterPartition",
        "Ask the controller to change the in-sync replicas of a partition (KIP-497).",
        versions="2-3",
        flexible="0+",
        request="""
            BrokerId                 int32
            BrokerEpoch              int64                 = -1
            Topics                   []TopicData
              TopicId                uuid             2+   ignorable
              Partitions             []PartitionData
                PartitionIndex       int32
                LeaderEpoch          int32
                NewIsr               []int32          0-2
                NewIsrWithEpochs     []BrokerState    3+
                  BrokerId           int32            3+
                  BrokerEpoch        int64            3+   = -1
                LeaderRecoveryState  int8             1+
                PartitionEpoch       int32
        """,
        response="""
            ThrottleTimeMs           int32
            ErrorCode                int16
            Topics                   []TopicData
              TopicId                uuid             2+  ignorable
              Partitions             []PartitionData
                PartitionIndex       int32
                ErrorCode            int16
                LeaderId             int32
                LeaderEpoch          int32
                Isr                  []int32
                LeaderRecoveryState  int8             1+  ignorable
                PartitionEpoch       int32
        """,
    ),
)
