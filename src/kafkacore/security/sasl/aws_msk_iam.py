"""The client's side of AWS_MSK_IAM, which needs the extra ``[aws]``.

The client sends a presigned request (signature version 4) as JSON, in the format 2020_10_22 of Amazon's
``aws-msk-iam-auth``. botocore finds the credentials and signs the request; the secret key is never sent.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from importlib import import_module
from typing import Final, NamedTuple, Protocol, cast

from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import KafkaConfigurationError, SaslAuthenticationFailedError
from kafkacore.security.sasl.bounded_call import BoundedCalls
from kafkacore.security.sasl.mechanism import ClientMechanism, SaslConfig, SaslMechanism
from kafkacore.security.sasl.oauth_token import json_object
from kafkacore.security.secret import Secret
from kafkacore.text import shown

AWS_MSK_IAM: Final = "AWS_MSK_IAM"
_VERSION: Final = "2020_10_22"
_SERVICE: Final = "kafka-cluster"
_ACTION: Final = "kafka-cluster:Connect"
_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_LIFE_SECONDS: Final = "900"
_USER_AGENT: Final = "kafkacore"
#: Matches host names such as b-1.name.abc123.c2.kafka.eu-west-1.amazonaws.com and
#: boot-abc.c1.kafka-serverless.cn-north-1.amazonaws.com.cn.
_HOST: Final = re.compile(r"\.kafka(?:-serverless)?\.([a-z]{2}(?:-[a-z]+)+-\d+)\.amazonaws\.com(?:\.cn)?\.?$")


class AwsKeys(NamedTuple):
    """AWS credentials. Temporary credentials have a session token."""

    access_key: str
    secret_key: Secret
    session_token: Secret | None


def region_of(host: str) -> str | None:
    """Return the region in a host name that Amazon assigns to brokers, or ``None`` for another name."""
    found = _HOST.search(host.lower())
    return None if found is None else found[1]


def signed_payload(keys: AwsKeys, host: str, region: str, at: datetime) -> bytes:
    """Return the payload to send to the broker.

    Parameters
    ----------
    at:
        The current time in UTC. The payload is valid for 15 minutes.
    """
    request = import_module("botocore.awsrequest").AWSRequest("GET", "https://kafka/", headers={"host": host})
    request.context["timestamp"] = moment = at.strftime("%Y%m%dT%H%M%SZ")
    credentials = import_module("botocore.credentials").Credentials(keys.access_key, keys.secret_key.text())
    signer = import_module("botocore.auth").SigV4Auth(credentials, _SERVICE, region)
    fields = {
        "X-Amz-Algorithm": _ALGORITHM,
        "X-Amz-Credential": signer.scope(request),
        "X-Amz-Date": moment,
        "X-Amz-Expires": _LIFE_SECONDS,
        "X-Amz-SignedHeaders": "host",
    }
    if keys.session_token is not None:
        fields["X-Amz-Security-Token"] = keys.session_token.text()
    request.params = {"Action": _ACTION} | fields
    # add_auth() is not used, because it logs the signature and the session token at level DEBUG.
    to_sign = signer.string_to_sign(request, signer.canonical_request(request))
    signature: str = signer.signature(to_sign, request)
    payload = {"version": _VERSION, "host": host, "user-agent": _USER_AGENT, "action": _ACTION}
    payload |= {name.lower(): value for name, value in fields.items()}
    return json.dumps(payload | {"x-amz-signature": signature}, separators=(",", ":")).encode()


class _FrozenCredentials(Protocol):
    access_key: str
    secret_key: str
    token: str | None


class _Credentials(Protocol):
    def get_frozen_credentials(self) -> _FrozenCredentials: ...


class _Session(Protocol):
    """The methods of botocore's session that are used here."""

    def get_config_variable(self, name: str) -> str | None: ...
    def get_credentials(self) -> _Credentials | None: ...


class AwsLogin:
    """The AWS credentials that all authentications of one client share. botocore renews the credentials."""

    def __init__(self, config: SaslConfig) -> None:
        try:
            session: _Session = import_module("botocore.session").Session()
        except ModuleNotFoundError as error:
            raise KafkaConfigurationError(
                "sasl_mechanism='AWS_MSK_IAM' needs botocore: install kafkacore[aws]"
            ) from error
        self.region: str | None = config.aws_region or None
        self.default_region: str | None = session.get_config_variable("region")
        credentials = session.get_credentials()
        if credentials is None:
            raise KafkaConfigurationError(
                "sasl_mechanism='AWS_MSK_IAM' found no AWS credentials: set AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY, or configure another source that botocore supports"
            )
        self._credentials = credentials
        self._calls = BoundedCalls("AWS credentials")

    def keys_now(self) -> AwsKeys:
        """Return the current credentials, or raise CredentialsUnavailableError if renewing takes too long."""
        return self._calls.call(self.keys)

    def keys(self) -> AwsKeys:
        """Return the current credentials, however long it takes to renew them."""
        frozen = self._credentials.get_frozen_credentials()
        token = Secret(frozen.token) if frozen.token else None
        return AwsKeys(frozen.access_key, Secret(frozen.secret_key), token)

    def close(self) -> None:
        """Do nothing: this login has no background work."""


class AwsMskIamMechanism(SaslMechanism):
    """One authentication by AWS_MSK_IAM."""

    name = AWS_MSK_IAM

    def __init__(self, login: AwsLogin, host: str) -> None:
        self._login = login
        self._host = host
        self._has_sent = False

    def step(self, challenge: bytes | None) -> bytes | None:
        if not self._has_sent:
            self._has_sent = True
            login, host = self._login, self._host
            region = login.region or region_of(host) or login.default_region
            if region is None:
                raise SaslAuthenticationFailedError(
                    f"the host name {host} contains no AWS region: set sasl_aws_region or AWS_DEFAULT_REGION"
                )
            now = datetime.fromtimestamp(SYSTEM_CLOCK.wall_ms() / 1000.0, UTC)
            return signed_payload(_credentials(login), host, region, now)
        try:
            version = json_object(challenge or b"").get("version")
        except ValueError as error:
            raise SaslAuthenticationFailedError(
                f"cannot parse the broker's response to AWS_MSK_IAM: {error}"
            ) from None
        if version != _VERSION:
            raise SaslAuthenticationFailedError(
                f"the broker uses version {shown(str(version))} of AWS_MSK_IAM; supported is {_VERSION}"
            )
        self.is_complete = True
        return None


def _credentials(login: AwsLogin) -> AwsKeys:
    try:
        return login.keys_now()
    except import_module("botocore.exceptions").BotoCoreError as error:
        raise SaslAuthenticationFailedError(f"failed to get AWS credentials: {error}") from error


def log_in(config: SaslConfig) -> SaslConfig:
    """Return the settings with an :class:`AwsLogin` that has credentials.

    Raises
    ------
    KafkaConfigurationError
        There are no credentials, or the connection is not encrypted.
    """
    if not config.is_encrypted:
        raise KafkaConfigurationError("sasl_mechanism='AWS_MSK_IAM' needs security_protocol='SASL_SSL'")
    login = AwsLogin(config)
    login.keys()
    return replace(config, login=login)


def aws_msk_iam_client(config: SaslConfig, host: str) -> SaslMechanism:
    """Create the mechanism from settings that :func:`log_in` has returned."""
    return AwsMskIamMechanism(cast(AwsLogin, config.login), host)


CLIENT: Final = ClientMechanism(aws_msk_iam_client, prepare=log_in)
