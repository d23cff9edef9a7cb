"""The controllers' Raft quorum (KIP-595, KIP-853).

Source: Apache Kafka 4.3, ``common/message`` of kafka-clients.
"""

from kafkacore.protocol.schema.declaration import api

APIS = (
    api(
        52,
        "Vote",
        "Request a vote for a candidate.",
        versions="0-2",
        flexible="0+",
        request="""
            ClusterId               string?              = null
            VoterId                 int32            1+  = -1 ignorable
            Topics                  []TopicData
              TopicName             string
              Partitions            []PartitionData
                PartitionIndex      int32
                ReplicaEpoch        int32
                ReplicaId           int32
                ReplicaDirectoryId  uuid             1+  ignorable
                VoterDirectoryId    uuid             1+  ignorable
                LastOffsetEpoch     int32
                LastOffset          int64
                PreVote             bool             2+
        """,
        response="""
            ErrorCode               int16
            Topics                  []TopicData
              TopicName             string
              Partitions            []PartitionData
                PartitionIndex      int32
                ErrorCode           int16
                LeaderId            int32
                LeaderEpoch         int32
                VoteGranted         bool
            NodeEndpoints           []NodeEndpoint   1+  tag 0
              NodeId                int32            1+  key
              Host                  string           1+
              Port                  uint16           1+
        """,
    ),
    api(
        53,
        "BeginQuorumEpoch",
        "Announce a new leader.",
        versions="0-1",
        flexible="1+",
        request="""
            ClusterId               string?               = null
            VoterId                 int32             1+  = -1 ignorable
            Topics                  []TopicData
              TopicName             string
              Partitions            []PartitionData
                PartitionIndex      int32
                VoterDirectoryId    uuid              1+  ignorable
                LeaderId            int32
                LeaderEpoch         int32
            LeaderEndpoints         []LeaderEndpoint  1+  ignorable
              Name                  string            1+  key
              Host                  string            1+
              Port                  uint16            1+
        """,
        response="""
            ErrorCode               int16
            Topics                  []TopicData
              TopicName             string
              Partitions            []PartitionData
                PartitionIndex      int32
                ErrorCode           int16
                LeaderId            int32
                LeaderEpoch         int32
            NodeEndpoints           []NodeEndpoint   1+  tag 0
              NodeId                int32            1+  key
              Host                  string           1+
              Port                  uint16           1+
        """,
    ),
    api(
        54,
        "EndQuorumEpoch",
        "Announce that the leader resigns.",
        versions="0-1",
        flexible="1+",
        request="""
            ClusterId                   string?               = null
            Topics                      []TopicData
              TopicName                 string
              Partitions                []PartitionData
                PartitionIndex          int32
                LeaderId                int32
                LeaderEpoch             int32
                PreferredSuccessors     []int32           0   ignorable
                PreferredCandidates     []ReplicaInfo     1+  ignorable
                  CandidateId           int32             1+
                  CandidateDirectoryId  uuid              1+
            LeaderEndpoints             []LeaderEndpoint  1+  ignorable
              Name                      string            1+  key
              Host                      string            1+
              Port                      uint16            1+
        """,
        response="""
            ErrorCode               int16
            Topics                  []TopicData
              TopicName             string
              Partitions            []PartitionData
                PartitionIndex      int32
                ErrorCode           int16
                LeaderId            int32
                LeaderEpoch         int32
            NodeEndpoints           []NodeEndpoint   1+  tag 0
              NodeId                int32            1+  key
              Host                  string           1+
              Port                  uint16           1+
        """,
    ),
    api(
        55,
        "DescribeQuorum",
        "Describe the leader, voters and observers of the quorum (KIP-836).",
        versions="0-2",
        flexible="0+",
        request="""
            Topics                  []TopicData
              TopicName             string
              Partitions            []PartitionData
                PartitionIndex      int32
        """,
        response="""
            ErrorCode                int16
            ErrorMessage             string?          2+  ignorable
            Topics                   []TopicData
              TopicName              string
              Partitions             []PartitionData
                PartitionIndex       int32
                ErrorCode            int16
                ErrorMessage         string?          2+  ignorable
                LeaderId             int32
                LeaderEpoch          int32
                HighWatermark        int64
                CurrentVoters        []ReplicaState
                Observers            []ReplicaState
            Nodes                    []Node           2+
              NodeId                 int32            2+  key
              Listeners              []Listener       2+
                Name                 string           2+  key
                Host                 string           2+
                Port                 uint16           2+
            struct ReplicaState
              ReplicaId              int32
              ReplicaDirectoryId     uuid             2+
              LogEndOffset           int64
              LastFetchTimestamp     int64            1+  = -1 ignorable
              LastCaughtUpTimestamp  int64            1+  = -1 ignorable
        """,
    ),
    api(
        59,
        "FetchSnapshot",
        "Read part of a snapshot of the metadata log (KIP-630).",
        versions="0-1",
        flexible="0+",
        request="""
            ClusterId               string?                  = null tag 0
            ReplicaId               int32                    = -1
            MaxBytes                int32                    = 0x7fffffff
            Topics                  []TopicSnapshot
              Name                  string
              Partitions            []PartitionSnapshot
                Partition           int32
                CurrentLeaderEpoch  int32
                SnapshotId          SnapshotId
                  EndOffset         int64
                  Epoch             int32
                Position            int64
                ReplicaDirectoryId  uuid                 1+  tag 0 ignorable
        """,
        response="""
            ThrottleTimeMs          int32                    ignorable
            ErrorCode               int16
            Topics                  []TopicSnapshot
              Name                  string
              Partitions            []PartitionSnapshot
                Index               int32
                ErrorCode           int16
                SnapshotId          SnapshotId
                  EndOffset         int64
                  Epoch             int32
                CurrentLeader       LeaderIdAndEpoch         tag 0
                  LeaderId          int32
                  LeaderEpoch       int32
                Size                int64
                Position            int64
                UnalignedRecords    records
            NodeEndpoints           []NodeEndpoint       1+  tag 0
              NodeId                int32                1+  key
              Host                  string               1+
              Port                  uint16               1+
        """,
    ),
    api(
        80,
        "AddRaftVoter",
        "Add a voter.",
        versions="0-1",
        flexible="0+",
        request="""
            ClusterId               string?
            TimeoutMs               int32
            VoterId                 int32
            VoterDirectoryId        uuid
            Listeners               []Listener
              Name                  string          key
              Host                  string
              Port                  uint16
            AckWhenCommitted        bool        1+  = true
        """,
        response="""
            ThrottleTimeMs          int32
            ErrorCode               int16
            ErrorMessage            string?       ignorable
        """,
    ),
    api(
        81,
        "RemoveRaftVoter",
        "Remove a voter.",
        versions="0",
        flexible="0+",
        request="""
            ClusterId               string?
            VoterId                 int32
            VoterDirectoryId        uuid
        """,
        response="""
            ThrottleTimeMs          int32
            ErrorCode               int16
            ErrorMessage            string?       ignorable
        """,
    ),
    api(
        82,
        "UpdateRaftVoter",
        "Change the endpoints and versions of a voter.",
        versions="0",
        flexible="0+",
        request="""
            ClusterId               string?
            CurrentLeaderEpoch      int32
            VoterId                 int32
            VoterDirectoryId        uuid
            Listeners               []Listener
              Name                  string                 key
              Host                  string
              Port                  uint16
            KRaftVersionFeature     KRaftVersionFeature
              MinSupportedVersion   int16
              MaxSupportedVersion   int16
        """,
        response="""
            ThrottleTimeMs          int32
            ErrorCode               int16
            CurrentLeader           CurrentLeader    tag 0
              LeaderId              int32            = -1
              LeaderEpoch           int32            = -1
              Host                  string
              Port                  int32
        """,
    ),
)
