"""Authentication: SASL, delegation tokens and SCRAM credentials.

Source: Apache Kafka 4.3, ``common/message`` of kafka-clients.
"""

from kafkacore.protocol.schema.declaration import api

APIS = (
    api(
        17,
        "SaslHandshake",
        "Choose the SASL mechanism.",
        versions="0-1",
        request="""
            Mechanism               string
        """,
        response="""
            ErrorCode               int16
            Mechanisms              []string
        """,
    ),
    api(
        36,
        "SaslAuthenticate",
        "Exchange the messages of the SASL mechanism.",
        versions="0-2",
        flexible="2+",
        request="""
            AuthBytes               bytes
        """,
        response="""
            ErrorCode               int16
            ErrorMessage            string?
            AuthBytes               bytes
            SessionLifetimeMs       int64       1+  ignorable
        """,
    ),
    api(
        38,
        "CreateDelegationToken",
        "Create a delegation token (KIP-48).",
        versions="1-3",
        flexible="2+",
        request="""
            OwnerPrincipalType      string?              3+
            OwnerPrincipalName      string?              3+
            Renewers                []CreatableRenewers
              PrincipalType         string
              PrincipalName         string
            MaxLifetimeMs           int64
        """,
        response="""
            ErrorCode                    int16
            PrincipalType                string
            PrincipalName                string
            TokenRequesterPrincipalType  string      3+
            TokenRequesterPrincipalName  string      3+
            IssueTimestampMs             int64
            ExpiryTimestampMs            int64
            MaxTimestampMs               int64
            TokenId                      string
            Hmac                         bytes
            ThrottleTimeMs               int32
        """,
    ),
    api(
        39,
        "RenewDelegationToken",
        "Extend the lifetime of a delegation token.",
        versions="1-2",
        flexible="2+",
        request="""
            Hmac                    bytes
            RenewPeriodMs           int64
        """,
        response="""
            ErrorCode               int16
            ExpiryTimestampMs       int64
            ThrottleTimeMs          int32
        """,
    ),
    api(
        40,
        "ExpireDelegationToken",
        "Shorten the lifetime of a delegation token.",
        versions="1-2",
        flexible="2+",
        request="""
            Hmac                    bytes
            ExpiryTimePeriodMs      int64
        """,
        response="""
            ErrorCode               int16
            ExpiryTimestampMs       int64
            ThrottleTimeMs          int32
        """,
    ),
    api(
        41,
        "DescribeDelegationToken",
        "List delegation tokens.",
        versions="1-3",
        flexible="2+",
        request="""
            Owners                  []DescribeDelegationTokenOwner?
              PrincipalType         string
              PrincipalName         string
        """,
        response="""
            ErrorCode                      int16
            Tokens                         []DescribedDelegationToken
              PrincipalType                string
              PrincipalName                string
              TokenRequesterPrincipalType  string                             3+
              TokenRequesterPrincipalName  string                             3+
              IssueTimestamp               int64
              ExpiryTimestamp              int64
              MaxTimestamp                 int64
              TokenId                      string
              Hmac                         bytes
              Renewers                     []DescribedDelegationTokenRenewer
                PrincipalType              string
                PrincipalName              string
            ThrottleTimeMs                 int32
        """,
    ),
    api(
        50,
        "DescribeUserScramCredentials",
        "List the SCRAM credentials of users, without the secrets (KIP-554).",
        versions="0",
        flexible="0+",
        request="""
            Users                   []UserName?
              Name                  string
        """,
        response="""
            ThrottleTimeMs          int32
            ErrorCode               int16
            ErrorMessage            string?
            Results                 []DescribeUserScramCredentialsResult
              User                  string
              ErrorCode             int16
              ErrorMessage          string?
              CredentialInfos       []CredentialInfo
                Mechanism           int8
                Iterations          int32
        """,
    ),
    api(
        51,
        "AlterUserScramCredentials",
        "Set and delete SCRAM credentials of users (KIP-554).",
        versions="0",
        flexible="0+",
        request="""
            Deletions               []ScramCredentialDeletion
              Name                  string
              Mechanism             int8
            Upsertions              []ScramCredentialUpsertion
              Name                  string
              Mechanism             int8
              Iterations            int32
              Salt                  bytes
              SaltedPassword        bytes
        """,
        response="""
            ThrottleTimeMs          int32
            Results                 []AlterUserScramCredentialsResult
              User                  string
              ErrorCode             int16
              ErrorMessage          string?
        """,
    ),
)
