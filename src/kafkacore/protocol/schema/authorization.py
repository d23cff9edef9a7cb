"""Access control lists and client quotas.

Source: Apache Kafka 4.3, ``common/message`` of kafka-clients.
"""

from kafkacore.protocol.schema.declaration import api

APIS = (
    api(
        29,
        "DescribeAcls",
        "List the access control entries that match a filter.",
        versions="1-3",
        flexible="2+",
        request="""
            ResourceTypeFilter      int8
            ResourceNameFilter      string?
            PatternTypeFilter       int8        1+  = 3
            PrincipalFilter         string?
            HostFilter              string?
            Operation               int8
            PermissionType          int8
        """,
        response="""
            ThrottleTimeMs          int32
            ErrorCode               int16
            ErrorMessage            string?
            Resources               []DescribeAclsResource
              ResourceType          int8
              ResourceName          string
              PatternType           int8                    1+  = 3
              Acls                  []AclDescription
                Principal           string
                Host                string
                Operation           int8
                PermissionType      int8
        """,
    ),
    api(
        30,
        "CreateAcls",
        "Add access control entries.",
        versions="1-3",
        flexible="2+",
        request="""
            Creations               []AclCreation
              ResourceType          int8
              ResourceName          string
              ResourcePatternType   int8           1+  = 3
              Principal             string
              Host                  string
              Operation             int8
              PermissionType        int8
        """,
        response="""
            ThrottleTimeMs          int32
            Results                 []AclCreationResult
              ErrorCode             int16
              ErrorMessage          string?
        """,
    ),
    api(
        31,
        "DeleteAcls",
        "Delete the access control entries that match filters.",
        versions="1-3",
        flexible="2+",
        request="""
            Filters                 []DeleteAclsFilter
              ResourceTypeFilter    int8
              ResourceNameFilter    string?
              PatternTypeFilter     int8                1+  = 3
              PrincipalFilter       string?
              HostFilter            string?
              Operation             int8
              PermissionType        int8
        """,
        response="""
            ThrottleTimeMs          int32
            FilterResults           []DeleteAclsFilterResult
              ErrorCode             int16
              ErrorMessage          string?
              MatchingAcls          []DeleteAclsMatchingAcl
                ErrorCode           int16
                ErrorMessage        string?
                ResourceType        int8
                ResourceName        string
                PatternType         int8                      1+  = 3
                Principal           string
                Host                string
                Operation           int8
                PermissionType      int8
        """,
    ),
    api(
        48,
        "DescribeClientQuotas",
        "List the quotas that match a filter (KIP-546).",
        versions="0-1",
        flexible="1+",
        request="""
            Components              []ComponentData
              EntityType            string
              MatchType             int8
              Match                 string?
            Strict                  bool
        """,
        response="""
            ThrottleTimeMs          int32
            ErrorCode               int16
            ErrorMessage            string?
            Entries                 []EntryData?
              Entity                []EntityData
                EntityType          string
                EntityName          string?
              Values                []ValueData
                Key                 string
                Value               float64
        """,
    ),
    api(
        49,
        "AlterClientQuotas",
        "Set and remove quotas (KIP-546).",
        versions="0-1",
        flexible="1+",
        request="""
            Entries                 []EntryData
              Entity                []EntityData
                EntityType          string
                EntityName          string?
              Ops                   []OpData
                Key                 string
                Value               float64
                Remove              bool
            ValidateOnly            bool
        """,
        response="""
            ThrottleTimeMs          int32
            Entries                 []EntryData
              ErrorCode             int16
              ErrorMessage          string?
              Entity                []EntityData
                EntityType          string
                EntityName          string?
        """,
    ),
)
