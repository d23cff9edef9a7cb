"""Classic groups, in which one member, the leader, assigns the partitions.

Source: Apache Kafka 4.3, ``common/message`` of kafka-clients.
"""

from kafkacore.protocol.schema.declaration import api

APIS = (
    api(
        10,
        "FindCoordinator",
        "Find the broker that coordinates a group or a transactional id.",
        versions="0-6",
        flexible="3+",
        request="""
            Key                     string      0-3
            KeyType                 int8        1+
            CoordinatorKeys         []string    4+
        """,
        response="""
            ThrottleTimeMs          int32          1+   ignorable
            ErrorCode               int16          0-3
            ErrorMessage            string?        1-3  ignorable
            NodeId                  int32          0-3
            Host                    string         0-3
            Port                    int32          0-3
            Coordinators            []Coordinator  4+
              Key                   string         4+
              NodeId                int32          4+
              Host                  string         4+
              Port                  int32          4+
              ErrorCode             int16          4+
              ErrorMessage          string?        4+   ignorable
        """,
    ),
    api(
        11,
        "JoinGroup",
        "Join a group. The coordinator responds when all members have joined.",
        versions="0-9",
        flexible="6+",
        request="""
            GroupId                 string
            SessionTimeoutMs        int32
            RebalanceTimeoutMs      int32                       1+  = -1 ignorable
            MemberId                string
            GroupInstanceId         string?                     5+  = null
            ProtocolType            string
            Protocols               []JoinGroupRequestProtocol
              Name                  string                          key
              Metadata              bytes
            Reason                  string?                     8+  = null ignorable
        """,
        response="""
            ThrottleTimeMs          int32                      2+  ignorable
            ErrorCode               int16
            GenerationId            int32                          = -1
            ProtocolType            string?                    7+  = null ignorable
            ProtocolName            string?7+
            Leader                  string
            SkipAssignment          bool                       9+
            MemberId                string
            Members                 []JoinGroupResponseMember
              MemberId              string
              GroupInstanceId       string?                    5+  = null ignorable
              Metadata              bytes
        """,
    ),
    api(
        14,
        "SyncGroup",
        "Send the leader's assignment and receive the assignment of each member.",
        versions="0-5",
        flexible="4+",
        request="""
            GroupId                 string
            GenerationId            int32
            MemberId                string
            GroupInstanceId         string?                       3+  = null
            ProtocolType            string?                       5+  = null ignorable
            ProtocolName            string?                       5+  = null ignorable
            Assignments             []SyncGroupRequestAssignment
              MemberId              string
              Assignment            bytes
        """,
        response="""
            ThrottleTimeMs          int32       1+  ignorable
            ErrorCode               int16
            ProtocolType            string?     5+  = null ignorable
            ProtocolName            string?     5+  = null ignorable
            Assignment              bytes
        """,
    ),
    api(
        12,
        "Heartbeat",
        "Stay a member of a group.",
        versions="0-4",
        flexible="4+",
        request="""
            GroupId                 string
            GenerationId            int32
            MemberId                string
            GroupInstanceId         string?     3+  = null
        """,
        response="""
            ThrottleTimeMs          int32       1+  ignorable
            ErrorCode               int16
        """,
    ),
    api(
        13,
        "LeaveGroup",
        "Leave a group, or remove static members from a group.",
        versions="0-5",
        flexible="4+",
        request="""
            GroupId                 string
            MemberId                string            0-2
            Members                 []MemberIdentity  3+
              MemberId              string            3+
              GroupInstanceId       string?           3+   = null
              Reason                string?           5+   = null ignorable
        """,
        response="""
            ThrottleTimeMs          int32             1+  ignorable
            ErrorCode               int16
            Members                 []MemberResponse  3+
              MemberId              string            3+
              GroupInstanceId       string?           3+
              ErrorCode             int16             3+
        """,
    ),
    api(
        15,
        "DescribeGroups",
        "Describe the state, members and assignments of groups.",
        versions="0-6",
        flexible="5+",
        request="""
            Groups                       []string
            IncludeAuthorizedOperations  bool        3+
        """,
        response="""
            ThrottleTimeMs          int32                   1+  ignorable
            Groups                  []DescribedGroup
              ErrorCode             int16
              ErrorMessage          string?                 6+  = null
              GroupId               string
              GroupState            string
              ProtocolType          string
              ProtocolData          string
              Members               []DescribedGroupMember
                MemberId            string
                GroupInstanceId     string?                 4+  = null ignorable
                ClientId            string
                ClientHost          string
                MemberMetadata      bytes
                MemberAssignment    bytes
              AuthorizedOperations  int32                   3+  = -2147483648
        """,
    ),
    api(
        16,
        "ListGroups",
        "List the groups that a broker coordinates.",
        versions="0-5",
        flexible="3+",
        request="""
            StatesFilter            []string    4+
            TypesFilter             []string    5+
        """,
        response="""
            ThrottleTimeMs          int32          1+  ignorable
            ErrorCode               int16
            Groups                  []ListedGroup
              GroupId               string
              ProtocolType          string
              GroupState            string         4+  ignorable
              GroupType             string         5+  ignorable
        """,
    ),
    api(
        42,
        "DeleteGroups",
        "Delete empty groups.",
        versions="0-2",
        flexible="2+",
        request="""
            GroupsNames             []string
        """,
        response="""
            ThrottleTimeMs          int32
            Results                 []DeletableGroupResult
              GroupId               string                    key
              ErrorCode             int16
        """,
    ),
)
