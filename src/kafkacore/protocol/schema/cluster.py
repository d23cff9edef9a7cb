"""Metadata of the cluster: brokers, their API versions and features, and partitions.

Source: Apache Kafka 4.3, ``common/message`` of kafka-clients.
"""

from kafkacore.protocol.schema.declaration import api

APIS = (
    api(
        18,
        "ApiVersions",
        "List the API versions and features that the broker supports.",
        versions="0-4",
        flexible="3+",
        request="""
            ClientSoftwareName      string      3+  ignorable
            ClientSoftwareVersion   string      3+  ignorable
        """,
        response="""
            ErrorCode               int16
            ApiKeys                 []ApiVersion
              ApiKey                int16                      key
              MinVersion            int16
              MaxVersion            int16
            ThrottleTimeMs          int32                  1+  ignorable
            SupportedFeatures       []SupportedFeatureKey  3+  tag 0 ignorable
              Name                  string                 3+  key
              MinVersion            int16                  3+
              MaxVersion            int16                  3+
            FinalizedFeaturesEpoch  int64                  3+  = -1 tag 1 ignorable
            FinalizedFeatures       []FinalizedFeatureKey  3+  tag 2 ignorable
              Name                  string                 3+  key
              MaxVersionLevel       int16                  3+
              MinVersionLevel       int16                  3+
            ZkMigrationReady        bool                   3+  tag 3 ignorable
        """,
    ),
    api(
        3,
        "Metadata",
        "Describe brokers, topics, partitions and their leaders.",
        versions="0-13",
        flexible="9+",
        request="""
            Topics                              []MetadataRequestTopic?1+
              TopicId                           uuid                       10+   ignorable
              Name                              string?10+
            AllowAutoTopicCreation              bool                       4+    = true
            IncludeClusterAuthorizedOperations  bool                       8-10
            IncludeTopicAuthorizedOperations    bool                       8+
        """,
        response="""
            ThrottleTimeMs               int32                        3+    ignorable
            Brokers                      []MetadataResponseBroker
              NodeId                     int32                              key
              Host                       string
              Port                       int32
              Rack                       string?                      1+    = null ignorable
            ClusterId                    string?                      2+    = null ignorable
            ControllerId                 int32                        1+    = -1 ignorable
            Topics                       []MetadataResponseTopic
              ErrorCode                  int16
              Name                       string?12+                         key
              TopicId                    uuid                         10+   ignorable
              IsInternal                 bool                         1+    ignorable
              Partitions                 []MetadataResponsePartition
                ErrorCode                int16
                PartitionIndex           int32
                LeaderId                 int32
                LeaderEpoch              int32                        7+    = -1 ignorable
                ReplicaNodes             []int32
                IsrNodes                 []int32
                OfflineReplicas          []int32                      5+    ignorable
              TopicAuthorizedOperations  int32                        8+    = -2147483648
            ClusterAuthorizedOperations  int32                        8-10  = -2147483648
            ErrorCode                    int16                        13+   ignorable
        """,
    ),
    api(
        60,
        "DescribeCluster",
        "Describe the id and the nodes of the cluster (KIP-700).",
        versions="0-2",
        flexible="0+",
        request="""
            IncludeClusterAuthorizedOperations  bool
            EndpointType                        int8        1+  = 1
            IncludeFencedBrokers                bool        2+
        """,
        response="""
            ThrottleTimeMs               int32
            ErrorCode                    int16
            ErrorMessage                 string?                      = null
            EndpointType                 int8                     1+  = 1
            ClusterId                    string
            ControllerId                 int32                        = -1
            Brokers                      []DescribeClusterBroker
              BrokerId                   int32                        key
              Host                       string
              Port                       int32
              Rack                       string?                      = null
              IsFenced                   bool                     2+
            ClusterAuthorizedOperations  int32                        = -2147483648
        """,
    ),
    api(
        75,
        "DescribeTopicPartitions",
        "Describe the partitions of topics, page by page (KIP-966).",
        versions="0",
        flexible="0+",
        request="""
            Topics                  []TopicRequest
              Name                  string
            ResponsePartitionLimit  int32             = 2000
            Cursor                  Cursor?           = null
              TopicName             string
              PartitionIndex        int32
        """,
        response="""
            ThrottleTimeMs               int32                                         ignorable
            Topics                       []DescribeTopicPartitionsResponseTopic
              ErrorCode                  int16
              Name                       string?                                       key
              TopicId                    uuid                                          ignorable
              IsInternal                 bool                                          ignorable
              Partitions                 []DescribeTopicPartitionsResponsePartition
                ErrorCode                int16
                PartitionIndex           int32
                LeaderId                 int32
                LeaderEpoch              int32                                         = -1 ignorable
                ReplicaNodes             []int32
                IsrNodes                 []int32
                EligibleLeaderReplicas   []int32?                                      = null
                LastKnownElr             []int32?                                      = null
                OfflineReplicas          []int32                                       ignorable
              TopicAuthorizedOperations  int32                                         = -2147483648
            NextCursor                   Cursor?                                       = null
              TopicName                  string
              PartitionIndex             int32
        """,
    ),
    api(
        57,
        "UpdateFeatures",
        "Raise or lower finalized feature levels (KIP-584).",
        versions="0-2",
        flexible="0+",
        request="""
            timeoutMs               int32                   = 60000
            FeatureUpdates          []FeatureUpdateKey
              Feature               string                  key
              MaxVersionLevel       int16
              AllowDowngrade        bool                0
              UpgradeType           int8                1+  = 1
            ValidateOnly            bool                1+
        """,
        response="""
            ThrottleTimeMs          int32
            ErrorCode               int16
            ErrorMessage            string?
            Results                 []UpdatableFeatureResult  0-1  ignorable
              Feature               string                         key
              ErrorCode             int16
              ErrorMessage          string?
        """,
    ),
    api(
        64,
        "UnregisterBroker",
        "Remove the registration of a broker (KIP-500).",
        versions="0",
        flexible="0+",
        request="""
            BrokerId                int32
        """,
        response="""
            ThrottleTimeMs          int32
            ErrorCode               int16
            ErrorMessage            string?
        """,
    ),
)
