"""Mapping of Kerberos principals to names, with the rules of Kafka's and Hadoop's documentation."""

from __future__ import annotations

import pytest

from kafkacore.errors import KafkaConfigurationError, SaslAuthenticationFailedError
from kafkacore.security.sasl.kerberos_names import ShortNames, split_rules


@pytest.mark.parametrize(
    ("rules", "principal", "name"),
    [
        ("", "alice@REALM", "alice"),
        ("DEFAULT", "kafka/host.example@REALM", "kafka"),
        ("RULE:[1:$1@$0](.*@OTHER)s/@.*//,DEFAULT", "bob@OTHER", "bob"),
        ("RULE:[1:$1@$0](.*@OTHER)s/@.*//,DEFAULT", "bob@REALM", "bob"),
        ("RULE:[2:$1/$2@$0](.*/admin@REALM)s/@.*//", "x@REALM", None),
        ("RULE:[2:$1](johndoe)s/^.*$/guest/", "johndoe/x@REALM", "guest"),
        ("RULE:[2:$1;$2](^.*;admin$)s/;admin$//", "alice/admin@REALM", "alice"),
        ("RULE:[1:$1](App\\..*)s/App\\.(.*)/$1/g", "App.service-name@REALM", "service-name"),
        ("RULE:[1:$1]/L", "ALICE@REALM", "alice"),
        ("RULE:[1:$1](.*)s/a/b/g/U", "banana@REALM", "BBNBNB"),
        ("RULE:[1:$1](.*)s/a/b/", "banana@REALM", "bbnana"),
        ("RULE:[1:$1](^.{1,3}$)s/x/y/, DEFAULT", "max@REALM", "may"),
        ("RULE:[2:$1-$2]", "a/b@X", "a-b"),
    ],
)
def test_first_rule_that_fits_names_the_principal(rules: str, principal: str, name: str | None) -> None:
    names = ShortNames(split_rules(rules), "REALM")
    if name is None:
        with pytest.raises(SaslAuthenticationFailedError, match="has no rule for"):
            names.of(principal)
    else:
        assert names.of(principal) == name


@pytest.mark.parametrize("principal", ["alice@OTHER", "a/b/c@REALM", "alice", "", "@REALM", "a@b@REALM"])
def test_principal_that_nobody_speaks_for_is_refused(principal: str) -> None:
    with pytest.raises(SaslAuthenticationFailedError):
        ShortNames(["DEFAULT"], "REALM").of(principal)


def test_name_that_would_be_a_principal_of_another_realm_is_refused() -> None:
    with pytest.raises(SaslAuthenticationFailedError, match="not a short name"):
        ShortNames(["RULE:[1:$1@$0]"], "REALM").of("alice@OTHER")


@pytest.mark.parametrize(
    "rule",
    [
        "",
        "default",
        "RULE:[1:$1",
        "RULE:[1:$2]",
        "RULE:[1:$]",
        "RULE:[1:$1](()",
        "RULE:[1:$1]s/a/$1/",
        "DEFAULT x",
    ],
)
def test_text_that_is_no_rule_is_named(rule: str) -> None:
    with pytest.raises(KafkaConfigurationError, match=r"sasl\.kerberos\.principal\.to\.local\.rules: "):
        ShortNames([rule], "REALM")
