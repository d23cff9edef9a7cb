"""Conversion of Java's security settings to arguments of our clients.

Invalid settings are rejected with a message that contains no secret.
"""

from __future__ import annotations

import importlib
import sys

import pytest

from kafkacore.errors import KafkaConfigurationError
from kafkacore.security.java_names import security_arguments
from kafkacore.security.references import ALLOWED_VARIABLES, resolved

MARK = "hunter2-zq7"
PACKAGE = "org.apache.kafka.common.security"
SCRAM = f'{PACKAGE}.scram.ScramLoginModule required username="alice" password="{MARK}";'
PLAIN = f'{PACKAGE}.plain.PlainLoginModule required username="alice" password="{MARK}";'
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n"


def arguments(**given):
    """Convert settings given as keyword arguments; ``sasl__jaas__config`` is ``sasl.jaas.config``."""
    return security_arguments({name.replace("__", "."): value for name, value in given.items()})[0]


@pytest.mark.parametrize(
    ("mechanism", "jaas"), [("SCRAM-SHA-256", SCRAM), ("SCRAM-SHA-512", SCRAM), ("PLAIN", PLAIN)]
)
def test_name_and_password_are_read_out_of_the_login_module(mechanism, jaas):
    given = {
        "security.protocol": "sasl_ssl",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": jaas,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/etc/ca.pem",
    }
    assert security_arguments(given) == (
        {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": mechanism,
            "sasl_plain_username": "alice",
            "sasl_plain_password": MARK,
            "ssl_cafile": "/etc/ca.pem",
        },
        [],
    )


def test_other_modules_and_the_names_of_other_clients_are_known_too():
    oauth = f"{PACKAGE}.oauthbearer.OAuthBearerLoginModule required"
    assert arguments(sasl__jaas__config=f'{oauth} clientId="me" clientSecret="{MARK}" scope="kafka";') == {
        "sasl_oauthbearer_client_credentials_client_id": "me",
        "sasl_oauthbearer_client_credentials_client_secret": MARK,
        "sasl_oauthbearer_scope": "kafka",
    }
    one, same = (
        arguments(sasl__jaas__config=f'{oauth} unsecuredLoginStringClaim_sub="me";')[
            "sasl_oauth_token_provider"
        ]
        for _ in "ab"
    )
    assert one is same
    kerberos = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab=/k principal=me;"
    assert arguments(sasl__jaas__config=kerberos) == {
        "sasl_mechanism": "GSSAPI",
        "sasl_kerberos_keytab": "/k",
        "sasl_kerberos_principal": "me",
    }
    aws = "software.amazon.msk.auth.iam.IAMLoginModule required;"
    handler = "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
    assert arguments(
        sasl__mechanism="AWS_MSK_IAM",
        sasl__jaas__config=aws,
        sasl__client__callback__handler__class=handler,
    ) == {"sasl_mechanism": "AWS_MSK_IAM"}
    assert arguments(
        sasl__username="a", sasl__password="b", ssl__ca__location="c", sasl__mechanisms="PLAIN"
    ) == {
        "sasl_plain_username": "a",
        "sasl_plain_password": "b",
        "ssl_cafile": "c",
        "sasl_mechanism": "PLAIN",
    }


def test_stores_of_pem_are_files_or_texts():
    assert arguments(ssl__keystore__type="PEM", ssl__keystore__location="/k", ssl__key__password=MARK) == {
        "ssl_certfile": "/k",
        "ssl_password": MARK,
    }
    assert arguments(
        ssl__keystore__type="PEM",
        ssl__keystore__certificate__chain=CERTIFICATE,
        ssl__keystore__key=KEY,
        ssl__truststore__certificates=CERTIFICATE,
    ) == {"ssl_certfile": CERTIFICATE, "ssl_keyfile": KEY, "ssl_cafile": CERTIFICATE}
    in_a_line = (CERTIFICATE * 2).replace("\n", " ")
    assert arguments(ssl__truststore__certificates=in_a_line) == {"ssl_cafile": CERTIFICATE * 2}
    assert arguments(ssl__truststore__location="/etc/ca.PEM") == {"ssl_cafile": "/etc/ca.PEM"}


def test_host_names_are_checked_unless_the_algorithm_is_empty():
    name = "ssl__endpoint__identification__algorithm"
    assert arguments(**{name: "https"}) == arguments(**{name: "HTTPS"}) == {"ssl_check_hostname": "true"}
    assert arguments(**{name: ""}) == arguments(**{name: "none"}) == {"ssl_check_hostname": "false"}


def test_versions_of_tls_are_those_that_are_told_and_spoken():
    for configured, spoken in (("TLSv1.3", "TLSv1.3"), ("TLSv1.2", "TLSv1.2"), ("TLSv1, TLSv1.2", "TLSv1.2")):
        assert arguments(ssl__enabled__protocols=configured) == {"ssl_enabled_protocols": spoken}
    assert arguments(ssl__enabled__protocols="TLSv1.3, TLSv1.2") == {
        "ssl_enabled_protocols": "TLSv1.3,TLSv1.2"
    }


def test_what_only_java_needs_is_without_effect():
    given = {"ssl.provider": "SunJSSE", "ssl.truststore.password": MARK}
    assert security_arguments(given, prefix="kafka.") == (
        {},
        ["kafka.ssl.provider", "kafka.ssl.truststore.password"],
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"ssl.truststore.location": "/t.jks"},
            "x.ssl.truststore.type is missing, which means JKS: set it to PEM",
        ),
        ({"ssl.truststore.type": "JKS"}, "keytool -importkeystore"),
        ({"ssl.keystore.type": "PKCS12", "ssl.keystore.location": "k"}, "openssl pkcs12 -in store.p12"),
        ({"ssl.keystore.password": MARK}, "use x.ssl.key.password instead"),
        ({"ssl.keystore.key": MARK}, "must be given together"),
        ({"ssl.engine.factory.class": "com.evil.Engine"}, "names a Java class, and kafkacore loads no Java"),
        ({"sasl.login.class": "com.evil.Login"}, "names a Java class"),
        ({"ssl.endpoint.identification.algorithm": "ldaps"}, "must be https, or empty"),
        ({"ssl.enabled.protocols": "TLSv1.1"}, "must contain TLSv1.2 or TLSv1.3"),
        ({"ssl.cipher.suites": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}, "use x.ssl.ciphers with OpenSSL's"),
        ({"sasl.mechanism": "PLAIN", "sasl.jaas.config": SCRAM}, "x.sasl.mechanism needs PlainLoginModule"),
        (
            {"sasl.jaas.config": SCRAM.replace("username", "user")},
            "unknown option of ScramLoginModule: user; known options: username",
        ),
        ({"sasl.jaas.config": "a.PlainLoginModule required username=u;"}, 'lacks the option password="…"'),
        ({"sasl.jaas.config": " "}, "is empty"),
        ({"sasl.jaas.config": f'password="{MARK}"'}, "must be a login module"),
        ({"sasl.jaas.config": SCRAM + PLAIN}, "more than one login module"),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_say_instead(given, words):
    with pytest.raises(KafkaConfigurationError) as refused:
        security_arguments(given, prefix="x.")
    assert words in str(refused.value)
    assert MARK not in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "module",
    [
        "com.sun.security.auth.module.JndiLoginModule",
        "com.sun.security.auth.module.LdapLoginModule",
        "antigravity",
        "os",
    ],
)
def test_cve_2025_27818_no_configuration_loads_a_class(module, monkeypatch):
    """An LDAP login module in ``sasl.jaas.config`` made Kafka run code that an LDAP server had sent."""

    def loaded(*_):
        raise AssertionError("no module may be imported by a configured name")

    monkeypatch.setattr(importlib, "import_module", loaded)
    before = set(sys.modules)
    text = f'{module} required user.provider.url="ldap://192.0.2.7/a" password="{MARK}";'
    for given in (
        {"sasl.jaas.config": text},
        *({name: module} for name in ("sasl.login.class", "ssl.engine.factory.class")),
        {"sasl.login.callback.handler.class": module},
        {"sasl.client.callback.handler.class": module},
        {"sasl.oauthbearer.jwt.retriever.class": module},
    ):
        with pytest.raises(KafkaConfigurationError):
            security_arguments(given)
    assert set(sys.modules) == before


# ---- References --------------------------------------------------------------------------------------------


def test_password_behind_a_reference_may_hold_what_jaas_would_not(monkeypatch):
    monkeypatch.setenv(ALLOWED_VARIABLES, "KAFKA_PW")
    monkeypatch.setenv("KAFKA_PW", ' a"b\\c; required ')
    given = {"sasl.jaas.config": SCRAM.replace(MARK, "${env:KAFKA_PW}")}
    assert security_arguments(given, resolved)[0]["sasl_plain_password"] == ' a"b\\c; required '


def test_whole_module_may_be_a_reference_and_is_not_looked_at_before_it_is_there(monkeypatch):
    given = {"sasl.jaas.config": "${env:KAFKA_JAAS}", "sasl.mechanism": "SCRAM-SHA-256"}
    assert security_arguments(given)[0] == {"sasl_mechanism": "SCRAM-SHA-256"}
    monkeypatch.setenv(ALLOWED_VARIABLES, "KAFKA_JAAS")
    monkeypatch.setenv("KAFKA_JAAS", SCRAM)
    assert security_arguments(given, resolved)[0] == {
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": "alice",
        "sasl_plain_password": MARK,
    }


def test_reference_to_nothing_says_which_setting_has_it():
    given = {"ssl.key.password": "${env:KAFKACORE_NOT_SET}"}
    with pytest.raises(
        KafkaConfigurationError, match=r"^kafka\.ssl\.key\.password refers to the environment variable"
    ):
        security_arguments(given, resolved, "kafka.")


@pytest.mark.parametrize(
    "name", ["security.protocol", "sasl.mechanism", "sasl.username", "ssl.truststore.location", "ssl.ciphers"]
)
def test_setting_that_holds_no_secret_is_refused_a_reference(name):
    with pytest.raises(KafkaConfigurationError, match=f"^kafka\\.{name} contains a reference"):
        security_arguments({name: "${env:HOME}"}, None, "kafka.")
