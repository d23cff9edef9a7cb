"""AWS_MSK_IAM in memory: the signature compared with botocore's, and the payload that Amazon documents."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import botocore.auth
import pytest
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from eventually import BUDGET_MS, BUDGET_S
from hypothesis import given
from hypothesis import strategies as st

from kafkacore.errors import (
    CredentialsUnavailableError,
    KafkaConfigurationError,
    SaslAuthenticationFailedError,
)
from kafkacore.security.sasl import SaslConfig, aws_msk_iam, bounded_call, make_mechanism
from kafkacore.security.sasl.aws_msk_iam import AwsKeys, region_of, signed_payload
from kafkacore.security.secret import Secret
from kafkacore.testing import VirtualClock

HOST = "b-1.flights.a1b2c3.c2.kafka.eu-central-1.amazonaws.com"
NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def config(**more: Any) -> SaslConfig:
    return SaslConfig.from_client_config(
        {"security_protocol": "SASL_SSL", "sasl_mechanism": "AWS_MSK_IAM"} | more
    )


@pytest.fixture(scope="module", autouse=True)
def virtual_clock() -> Iterator[None]:
    """Give the mechanism a virtual clock, and its calls enough time on a slow machine."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (aws_msk_iam, bounded_call):
            patch.setattr(module, "SYSTEM_CLOCK", VirtualClock())
        patch.setattr(bounded_call.BoundedCalls.__init__, "__defaults__", (BUDGET_MS,))
        yield


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_DEFAULT_REGION", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary/secret+key")


def by_botocore(keys: AwsKeys, host: str, region: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return the query fields of the URL that botocore presigns for the same request."""
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda: NOW.replace(tzinfo=None))
    token = None if keys.session_token is None else keys.session_token.text()
    signer = botocore.auth.SigV4QueryAuth(
        Credentials(keys.access_key, keys.secret_key.text(), token), "kafka-cluster", region, expires=900
    )
    request = AWSRequest("GET", f"https://{host}/?Action=kafka-cluster%3AConnect", headers={"host": host})
    signer.add_auth(request)
    return dict(parse_qsl(urlsplit(request.url).query))


@pytest.mark.parametrize("token", [None, "IQoJb3JpZ2luX2VjE//8wEaCXVzLWVhc3QtMSJ+=="])
@pytest.mark.parametrize("secret", ["wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "~ ü"])
def test_signature_is_botocores(token: str | None, secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = AwsKeys("AKIDEXAMPLE", Secret(secret), None if token is None else Secret(token))
    payload = json.loads(signed_payload(keys, HOST, "eu-central-1", NOW))
    theirs = by_botocore(keys, HOST, "eu-central-1", monkeypatch)
    ours = {name: value for name, value in payload.items() if name.startswith("x-amz")}
    assert ours == {name.lower(): value for name, value in theirs.items() if name != "Action"}
    assert payload["action"] == theirs["Action"]


def test_payload_has_the_published_fields_and_no_secret() -> None:
    keys = AwsKeys("AKIDEXAMPLE", Secret("canary"), Secret("token"))
    text = signed_payload(keys, HOST, "eu-central-1", NOW)
    assert b"canary" not in text
    payload = json.loads(text)
    assert len(payload.pop("x-amz-signature")) == 64
    assert payload == {
        "version": "2020_10_22",
        "host": HOST,
        "user-agent": "kafkacore",
        "action": "kafka-cluster:Connect",
        "x-amz-algorithm": "AWS4-HMAC-SHA256",
        "x-amz-credential": "AKIDEXAMPLE/20260304/eu-central-1/kafka-cluster/aws4_request",
        "x-amz-date": "20260304T050607Z",
        "x-amz-security-token": "token",
        "x-amz-signedheaders": "host",
        "x-amz-expires": "900",
    }


@pytest.mark.parametrize(
    ("host", "region"),
    [
        (HOST, "eu-central-1"),
        ("boot-abc.c1.kafka-serverless.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        ("B-1.X.C2.KAFKA.CN-NORTH-1.AMAZONAWS.COM.CN", "cn-north-1"),
        ("b-1.x.kafka.us-east-1.amazonaws.com.", "us-east-1"),
        ("b-1.x.kafka.us-east-1.amazonaws.com.evil.example", None),
        ("kafka.us-east-1.example", None),
        ("localhost", None),
    ],
)
def test_region_is_in_the_brokers_name(host: str, region: str | None) -> None:
    assert region_of(host) == region


@pytest.mark.usefixtures("credentials")
def test_client_signs_for_the_broker_and_believes_its_answer() -> None:
    client = make_mechanism(config(), HOST)
    payload = json.loads(client.step(None) or b"")
    assert (payload["host"], payload["x-amz-credential"].split("/")[2]) == (HOST, "eu-central-1")
    assert client.step(b'{"version":"2020_10_22","request-id":"x"}') is None
    assert client.is_complete


@pytest.mark.usefixtures("credentials")
def test_region_is_configured_before_it_is_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    def region(client: Any) -> str:
        return str(json.loads(client.step(None))["x-amz-credential"].split("/")[2])

    assert region(make_mechanism(config(sasl_aws_region="us-west-2"), HOST)) == "us-west-2"
    with pytest.raises(SaslAuthenticationFailedError, match="set sasl_aws_region or AWS_DEFAULT_REGION"):
        make_mechanism(config(), "localhost").step(None)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "ap-south-1")
    assert region(make_mechanism(config(), "localhost")) == "ap-south-1"
    assert region(make_mechanism(config(), HOST)) == "eu-central-1"


@pytest.mark.usefixtures("credentials")
@given(
    st.binary(max_size=60)
    | st.sampled_from([b"{}", b"[]", b'{"version":1}', b'{"version":"2030"}', b"[" * 9999])
)
def test_whatever_the_broker_answers_the_only_error_is_a_failed_authentication(answer: bytes) -> None:
    client = make_mechanism(config(), HOST)
    client.step(None)
    with pytest.raises(SaslAuthenticationFailedError, match="AWS_MSK_IAM"):
        client.step(answer)


@pytest.mark.usefixtures("credentials")
def test_connection_in_the_clear_is_refused() -> None:
    with pytest.raises(KafkaConfigurationError, match="needs security_protocol='SASL_SSL'"):
        config(security_protocol="SASL_PLAINTEXT")


@pytest.mark.usefixtures("credentials")
def test_no_credentials_are_told_where_the_client_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(KafkaConfigurationError, match="found no AWS credentials: set AWS_ACCESS_KEY_ID"):
        config()


@pytest.mark.usefixtures("credentials")
def test_credentials_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    made = config()
    assert "canary" not in repr(made) + repr(made.login.keys()) + repr(vars(made.login))


@pytest.mark.usefixtures("credentials")
def test_renewal_that_takes_long_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    made = config()
    may_end = threading.Event()
    monkeypatch.setattr(made.login._calls, "_max_wait_ms", 1.0)
    monkeypatch.setattr(made.login, "keys", lambda: may_end.wait(BUDGET_S))
    with pytest.raises(CredentialsUnavailableError, match="AWS credentials did not arrive within 1 ms"):
        make_mechanism(made, HOST).step(None)
    may_end.set()
