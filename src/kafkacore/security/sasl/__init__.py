"""SASL mechanisms of clients and brokers."""

from kafkacore.security.sasl import aws_msk_iam, gssapi, oauthbearer
from kafkacore.security.sasl.mechanism import (
    SaslConfig,
    SaslMechanism,
    make_mechanism,
    register_sasl_mechanism,
    sasl_mechanisms,
)
from kafkacore.security.sasl.plain import plain_client, sendable_user_and_password
from kafkacore.security.sasl.scram import scram_client, user_and_password
from kafkacore.security.sasl.scram_keys import HASH_NAMES

__all__ = ["SaslConfig", "SaslMechanism", "make_mechanism", "register_sasl_mechanism", "sasl_mechanisms"]

register_sasl_mechanism("PLAIN", plain_client, check=sendable_user_and_password)
for _scram in HASH_NAMES:
    register_sasl_mechanism(_scram, scram_client, check=user_and_password)
register_sasl_mechanism(oauthbearer.OAUTHBEARER, oauthbearer.oauthbearer_client, prepare=oauthbearer.log_in)
register_sasl_mechanism(gssapi.GSSAPI, gssapi.gssapi_client, prepare=gssapi.log_in)
register_sasl_mechanism(aws_msk_iam.AWS_MSK_IAM, aws_msk_iam.aws_msk_iam_client, prepare=aws_msk_iam.log_in)
