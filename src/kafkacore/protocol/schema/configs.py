"""Configuration of topics, brokers, groups and client metrics.

Source: Apache Kafka 4.3, ``common/message`` of kafka-clients.
"""

from kafkacore.protocol.schema.declaration import api

APIS = (
    api(
        32,
        "DescribeConfigs",
        "Read the configuration of resources.",
        versions="1-4",
        flexible="4+",
        request="""
            Resources               []DescribeConfigsResource
              ResourceType          int8
              ResourceName          string
              ConfigurationKeys     []string?
            IncludeSynonyms         bool                       1+
            IncludeDocumentation    bool                       3+
        """,
        response="""
            ThrottleTimeMs          int32
            Results                 []DescribeConfigsResult
              ErrorCode             int16
              ErrorMessage          string?
              ResourceType          int8
              ResourceName          string
              Configs               []DescribeConfigsResourceResult
                Name                string
                Value               string?
                ReadOnly            bool
                ConfigSource        int8                             1+  = -1 ignorable
                IsSensitive         bool
                Synonyms            []DescribeConfigsSynonym         1+  ignorable
                  Name              string                           1+
                  Value             string?                          1+
                  Source            int8                             1+
                ConfigType          int8                             3+  ignorable
                Documentation       string?                          3+  ignorable
        """,
    ),
    api(
        33,
        "AlterConfigs",
        "Replace the configuration of resources.",
        versions="0-2",
        flexible="2+",
        request="""
            Resources               []AlterConfigsResource
              ResourceType          int8                      key
              ResourceName          string                    key
              Configs               []AlterableConfig
                Name                string                    key
                Value               string?
            ValidateOnly            bool
        """,
        response="""
            ThrottleTimeMs          int32
            Responses               []AlterConfigsResourceResponse
              ErrorCode             int16
              ErrorMessage          string?
              ResourceType          int8
              ResourceName          string
        """,
    ),
    api(
        44,
        "IncrementalAlterConfigs",
        "Set, delete, append to or subtract from single configuration entries (KIP-339).",
        versions="0-1",
        flexible="1+",
        request="""
            Resources               []AlterConfigsResource
              ResourceType          int8                      key
              ResourceName          string                    key
              Configs               []AlterableConfig
                Name                string                    key
                ConfigOperation     int8                      key
                Value               string?
            ValidateOnly            bool
        """,
        response="""
            ThrottleTimeMs          int32
            Responses               []AlterConfigsResourceResponse
              ErrorCode             int16
              ErrorMessage          string?
              ResourceType          int8
              ResourceName          string
        """,
    ),
    api(
        74,
        "ListConfigResources",
        "List the resources that have a configuration (KIP-1142).",
        versions="0-1",
        flexible="0+",
        request="""
            ResourceTypes           []int8      1+
        """,
        response="""
            ThrottleTimeMs          int32
            ErrorCode               int16
            ConfigResources         []ConfigResource
              ResourceName          string
              ResourceType          int8              1+  = 16 ignorable
        """,
    ),
)
