"""Topics and their partitions.

Source: Apache Kafka 4.3, ``common/message`` of kafka-clients.
"""

from kafkacore.protocol.schema.declaration import api

APIS = (
    api(
        19,
        "CreateTopics",
        "Create topics.",
        versions="2-7",
        flexible="5+",
        request="""
            Topics                  []CreatableTopic
              Name                  string                            key
              NumPartitions         int32
              ReplicationFactor     int16
              Assignments           []CreatableReplicaAssignment
                PartitionIndex      int32                             key
                BrokerIds           []int32
              Configs               []CreatableTopicConfig
                Name                string                            key
                Value               string?
            timeoutMs               int32                             = 60000
            validateOnly            bool                          1+
        """,
        response="""
            ThrottleTimeMs          int32                     2+  ignorable
            Topics                  []CreatableTopicResult
              Name                  string                        key
              TopicId               uuid                      7+  ignorable
              ErrorCode             int16
              ErrorMessage          string?                   1+  ignorable
              TopicConfigErrorCode  int16                     5+  tag 0 ignorable
              NumPartitions         int32                     5+  = -1 ignorable
              ReplicationFactor     int16                     5+  = -1 ignorable
              Configs               []CreatableTopicConfigs?  5+  ignorable
                Name                string                    5+
                Value               string?                   5+
                ReadOnly            bool                      5+
                ConfigSource        int8                      5+  = -1 ignorable
                IsSensitive         bool                      5+
        """,
    ),
    api(
        20,
        "DeleteTopics",
        "Delete topics, by name or by id.",
        versions="1-6",
        flexible="4+",
        request="""
            Topics                  []DeleteTopicState  6+
              Name                  string?             6+   = null
              TopicId               uuid                6+
            TopicNames              []string            0-5  ignorable
            TimeoutMs               int32
        """,
        response="""
            ThrottleTimeMs          int32                   1+  ignorable
            Responses               []DeletableTopicResult
              Name                  string?6+                   key
              TopicId               uuid                    6+  ignorable
              ErrorCode             int16
              ErrorMessage          string?                 5+  = null ignorable
        """,
    ),
    api(
        37,
        "CreatePartitions",
        "Add partitions to topics.",
        versions="0-3",
        flexible="2+",
        request="""
            Topics                  []CreatePartitionsTopic
              Name                  string                           key
              Count                 int32
              Assignments           []CreatePartitionsAssignment?
                BrokerIds           []int32
            TimeoutMs               int32
            ValidateOnly            bool
        """,
        response="""
            ThrottleTimeMs          int32
            Results                 []CreatePartitionsTopicResult
              Name                  string
              ErrorCode             int16
              ErrorMessage          string?                          = null
        """,
    ),
)
