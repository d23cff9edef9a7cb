"""Validation of tokens by a broker."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st
from security.identity_provider import (
    AUDIENCE,
    EC_KEY,
    ISSUER,
    OTHER_RSA_KEY,
    RSA_KEY,
    claims,
    key_set,
    public_jwk,
    signed,
)

from kafkacore.errors import KafkaConfigurationError
from kafkacore.security.sasl.jwks import KeySet, KeySource, VerificationKey
from kafkacore.security.sasl.jwt_validation import ALGORITHMS, JwtRules, JwtValidator
from kafkacore.security.sasl.token_rules import TokenRefusedError
from kafkacore.security.sasl.unsecured_tokens import UnsecuredTokenProvider
from kafkacore.testing import VirtualClock

NOW_S = 1_000_000_000
CONFIG = {
    "sasl.oauthbearer.jwks.endpoint.url": "file:///keys.json",
    "sasl.oauthbearer.expected.issuer": ISSUER,
    "sasl.oauthbearer.expected.audience": f"other, {AUDIENCE}",
}


class Keys(KeySource):
    def __init__(self, document: bytes) -> None:
        self._set = KeySet.parse(document, "test")

    def key(self, key_id: str | None) -> VerificationKey | None:
        return self._set.key(key_id)


KEYS = Keys(key_set(public_jwk(RSA_KEY, "1", use="sig", alg="RS256"), public_jwk(EC_KEY, "ec")))


def validator(keys: KeySource = KEYS, **config: str) -> JwtValidator:
    rules = JwtRules.from_config(
        CONFIG | {f"sasl.oauthbearer.{name}": value for name, value in config.items()}
    )
    return JwtValidator(rules, keys, VirtualClock(NOW_S * 1000.0))


def refusal(token: str, of: JwtValidator | None = None) -> TokenRefusedError:
    with pytest.raises(TokenRefusedError) as caught:
        (of or validator()).validate(token)
    return caught.value


def unsigned(header: dict[str, Any], body: dict[str, Any], signature: str = "") -> str:
    parts = [jwt.utils.base64url_encode(json.dumps(part).encode()).decode() for part in (header, body)]
    return ".".join([*parts, signature])


def test_good_token_is_believed_until_it_ends() -> None:
    token = validator().validate(signed(claims(NOW_S)))
    assert token == ("alice", (NOW_S + 300) * 1000, {"a", "b"})


def test_token_by_an_elliptic_curve_is_believed() -> None:
    token = signed(claims(NOW_S, aud=["x", AUDIENCE], scope=["a"]), EC_KEY, "ES256", "ec")
    assert validator().validate(token).scope == {"a"}


# ---- Invalid tokens ----------------------------------------------------------------------------------------
def test_token_without_a_signature_is_refused() -> None:
    assert "algorithm 'none' is not allowed" in str(
        refusal(unsigned({"alg": "none", "kid": "1"}, claims(NOW_S)))
    )


def test_token_signed_by_a_stranger_is_refused() -> None:
    assert "InvalidSignature" in str(refusal(signed(claims(NOW_S), OTHER_RSA_KEY)))


def test_token_changed_after_it_was_signed_is_refused() -> None:
    header, _, signature = signed(claims(NOW_S)).split(".")
    forged = unsigned({}, claims(NOW_S, sub="admin")).split(".")[1]
    assert "InvalidSignature" in str(refusal(f"{header}.{forged}.{signature}"))


def test_token_signed_with_the_public_key_as_a_secret_is_refused() -> None:
    public = RSA_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    unsigned_part = unsigned({"alg": "HS256", "kid": "1"}, claims(NOW_S))[:-1]
    algorithm = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
    forged = jwt.utils.base64url_encode(algorithm.sign(unsigned_part.encode(), public)).decode()
    assert "algorithm 'HS256' is not allowed" in str(refusal(f"{unsigned_part}.{forged}"))


def test_token_of_another_issuer_is_refused() -> None:
    assert "Issuer" in str(refusal(signed(claims(NOW_S, iss="https://evil.example"))))
    assert "iss" in str(refusal(signed(claims(NOW_S, iss=None))))


def test_token_for_another_service_is_refused() -> None:
    assert "Audience" in str(refusal(signed(claims(NOW_S, aud="mail"))))
    assert "aud" in str(refusal(signed(claims(NOW_S, aud=None))))


def test_token_that_has_expired_is_refused() -> None:
    assert validator().validate(signed(claims(NOW_S, iat=NOW_S - 600, exp=NOW_S - 29)))  # 30 s of clock skew
    assert "expired" in str(refusal(signed(claims(NOW_S, iat=NOW_S - 600, exp=NOW_S - 30))))


def test_token_that_never_expires_is_refused() -> None:
    assert "exp" in str(refusal(signed(claims(NOW_S, exp=None))))


def test_token_of_the_future_is_refused() -> None:
    assert "not valid yet" in str(refusal(signed(claims(NOW_S, nbf=NOW_S + 31))))
    assert "future" in str(refusal(signed(claims(NOW_S, iat=NOW_S + 31))))


def test_token_that_was_never_issued_or_after_its_end_is_refused() -> None:
    assert "iat" in str(refusal(signed(claims(NOW_S, iat=None))))
    assert "after its own expiry" in str(refusal(signed(claims(NOW_S, iat=NOW_S + 20, exp=NOW_S + 10))))


def test_token_that_is_too_long_to_be_one_is_refused() -> None:
    assert validator().validate(signed(claims(NOW_S, groups="x" * 10_000)))
    assert "not a JWT" in str(refusal(signed(claims(NOW_S, groups="x" * 70_000))))


@pytest.mark.kafka("SaslAuthenticatorTest.testInsufficientScopeSaslOauthBearerMechanism")
def test_token_without_the_scope_is_refused_as_such() -> None:
    of = validator(**{"required.scope": "b kafka"})
    error = refusal(signed(claims(NOW_S)), of)
    assert str(error) == "the token lacks the scope kafka"
    assert error.status == "insufficient_scope"
    assert of.validate(signed(claims(NOW_S, scope="kafka b"))).scope == {"kafka", "b"}


# ---- Other tokens ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "missing",
    [
        "sasl.oauthbearer.jwks.endpoint.url",
        "sasl.oauthbearer.expected.issuer",
        "sasl.oauthbearer.expected.audience",
    ],
)
def test_cve_2026_33557_and_2026_110985_no_validator_without_keys_issuer_and_audience(missing: str) -> None:
    for incomplete in (
        {name: value for name, value in CONFIG.items() if name != missing},
        CONFIG | {missing: " "},
    ):
        with pytest.raises(KafkaConfigurationError, match=f"OAUTHBEARER needs {missing}"):
            JwtRules.from_config(incomplete)


def test_cve_2026_33557_preferred_username_of_a_token_that_a_stranger_signed_names_nobody() -> None:
    forged = signed(claims(NOW_S, preferred_username="admin", iss="https://evil.example"), OTHER_RSA_KEY)
    refusal(forged)
    refusal(UnsecuredTokenProvider("admin", clock=VirtualClock(NOW_S * 1000.0)).token())


def test_any_audience_has_to_be_asked_for() -> None:
    of = validator(**{"expected.audience": "*"})
    assert of.validate(signed(claims(NOW_S, aud=None))).principal == "alice"
    assert of.validate(signed(claims(NOW_S, aud="mail"))).principal == "alice"


def test_key_of_the_tokens_own_is_not_used() -> None:
    own = public_jwk(OTHER_RSA_KEY, "1")
    for header in ({"jwk": own}, {"jku": "https://evil.example/keys"}, {"x5u": "https://evil.example/"}):
        token = jwt.encode(claims(NOW_S), OTHER_RSA_KEY, algorithm="RS256", headers={"kid": "1"} | header)
        assert "InvalidSignature" in str(refusal(token))


@pytest.mark.parametrize("key_id", ["2", "", "../../etc/passwd", "1' OR 1=1", "1\x00"])
def test_key_that_is_not_known_is_refused(key_id: str) -> None:
    assert "unknown key" in str(refusal(signed(claims(NOW_S), key_id=key_id)))


def test_lone_key_is_meant_by_a_token_that_names_none_and_one_of_several_is_not() -> None:
    token = jwt.encode(claims(NOW_S), RSA_KEY, algorithm="RS256")
    assert validator(Keys(key_set(public_jwk(RSA_KEY, None)))).validate(token).principal == "alice"
    assert "unknown key" in str(refusal(token))


def test_key_is_used_for_its_own_algorithm_alone() -> None:
    assert "not be used with PS256" in str(refusal(signed(claims(NOW_S), algorithm="PS256")))
    assert "not be used with RS256" in str(refusal(signed(claims(NOW_S), key_id="ec")))
    assert "not be used with ES384" in str(
        refusal(unsigned({"alg": "ES384", "kid": "ec"}, claims(NOW_S), "AAAA"))
    )
    undecided = validator(Keys(key_set(public_jwk(RSA_KEY, "1"))))
    assert undecided.validate(signed(claims(NOW_S), algorithm="PS256")).principal == "alice"


def test_algorithms_can_be_narrowed_and_never_widened() -> None:
    assert "not allowed" in str(
        refusal(signed(claims(NOW_S)), validator(**{"allowed.algorithms": "ES256,ES384"}))
    )
    assert {"none", "HS256", "HS384", "HS512"}.isdisjoint(ALGORITHMS)
    for name in ("none", "HS256", "ES256,HS512"):
        with pytest.raises(KafkaConfigurationError, match="cannot be allowed"):
            validator(**{"allowed.algorithms": name})


def test_header_that_must_be_understood_is_refused() -> None:
    token = jwt.encode(
        claims(NOW_S), RSA_KEY, algorithm="RS256", headers={"kid": "1", "crit": ["exp"], "exp": 1}
    )
    assert "critical extensions" in str(refusal(token))


@pytest.mark.parametrize("name", ["", "  ", None, 7, ["alice"], "a\nb", "a\x00", "x" * 1025])
def test_token_that_names_nobody_is_refused(name: Any) -> None:
    refusal(signed(claims(NOW_S, sub=name)))


@pytest.mark.parametrize("time", ["1", True, -1, 1e300, 10**400, [], {}, None])
@pytest.mark.parametrize("claim", ["exp", "nbf", "iat"])
def test_time_that_is_none_is_refused(claim: str, time: Any) -> None:
    body = claims(NOW_S) | {claim: time}
    try:
        token = signed(body)
    except TypeError:  # PyJWT refuses to create such a token
        token = unsigned({"alg": "RS256", "kid": "1"}, body, "AAAA")
    refusal(token)


def test_infinite_time_is_refused() -> None:
    for value in (math.inf, math.nan):
        refusal(unsigned({"alg": "RS256", "kid": "1"}, claims(NOW_S, exp=value), "AAAA"))


@pytest.mark.parametrize("scope", [7, {"a": 1}, [1], True])
def test_scope_of_a_wrong_kind_is_refused(scope: Any) -> None:
    assert "neither text nor a list" in str(refusal(signed(claims(NOW_S, scope=scope))))


def test_principal_and_scope_may_be_other_claims() -> None:
    of = validator(**{"sub.claim.name": "client_id", "scope.claim.name": "scp", "required.scope": "x"})
    assert of.validate(signed(claims(NOW_S, client_id="bob", scp=["x"]))) == (
        "bob",
        (NOW_S + 300) * 1000,
        {"x"},
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "..",
        "...",
        "a.b.c",
        "e30.e30.",
        "W10.e30.AA",
        "bnVsbA.e30.AA",
        "\u00e4.b.c",
        "e30" * 30_000 + ".a.b",
    ],
)
def test_text_that_is_no_token_is_refused(text: str) -> None:
    refusal(text)


def test_nesting_too_deep_to_be_read_is_refused() -> None:
    deep = jwt.utils.base64url_encode(b'{"a":' + b"[" * 20_000).decode()
    refusal(f"{deep}.e30.AA")
    header = unsigned({"alg": "RS256", "kid": "1"}, {}).split(".")[0]
    refusal(f"{header}.{deep}.AA")


@given(st.text(alphabet=st.characters(max_codepoint=0x100), max_size=200))
def test_whatever_the_text_is_the_only_error_is_a_refusal(text: str) -> None:
    refusal(text)


@given(
    st.dictionaries(
        st.sampled_from(["alg", "kid", "typ", "crit", "b64"]),
        st.from_type(type(None)) | st.text() | st.booleans(),
    ),
    st.dictionaries(
        st.sampled_from(["exp", "iat", "sub", "aud", "iss", "scope"]), st.none() | st.integers() | st.text()
    ),
)
def test_whatever_a_stranger_claims_is_refused(header: dict[str, Any], body: dict[str, Any]) -> None:
    refusal(unsigned({"alg": "RS256", "kid": "1"} | header, body, "AAAA"))


@given(
    st.dictionaries(
        st.sampled_from([*claims(0), "nbf"]),
        st.none() | st.integers() | st.text() | st.lists(st.text()),
    )
)
def test_whatever_its_issuer_claims_the_only_error_is_a_refusal(changed: dict[str, Any]) -> None:
    token = jwt.api_jws.encode(json.dumps(claims(NOW_S) | changed).encode(), RSA_KEY, "RS256", {"kid": "1"})
    try:
        assert validator().validate(token).principal
    except TokenRefusedError:
        return


# ---- Key sets ----------------------------------------------------------------------------------------------
def test_keys_that_prove_nothing_are_left_out() -> None:
    weak = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    keys = KeySet.parse(
        key_set(
            {"kty": "oct", "kid": "oct", "k": "c2VjcmV0"},
            {"kty": "RSA", "kid": "cut", "n": "AQAB"},
            {"kty": "new", "kid": "new"},
            public_jwk(weak, "weak"),
            public_jwk(RSA_KEY, "enc", use="enc"),
            public_jwk(RSA_KEY, "good"),
        ),
        "test",
    )
    assert [name for name in ("oct", "cut", "new", "weak", "enc", "good") if keys.key(name)] == ["good"]


@pytest.mark.parametrize(
    "document", [b"", b"[]", b"{}", b'{"keys":7}', b'{"keys":[]}', b'{"keys":[7]}', b"\xff"]
)
def test_document_without_keys_is_refused(document: bytes) -> None:
    with pytest.raises(Exception, match=r"^test (is not a JSON Web Key Set|has no key)"):
        KeySet.parse(document, "test")


def test_published_private_key_is_read_as_a_public_one(tmp_path: Path) -> None:
    private = jwt.algorithms.RSAAlgorithm.to_jwk(RSA_KEY, as_dict=True) | {"kid": "1"}
    found = KeySet.parse(key_set(private), "test").key("1")
    assert found is not None
    assert isinstance(found.jwk.key, rsa.RSAPublicKey)
