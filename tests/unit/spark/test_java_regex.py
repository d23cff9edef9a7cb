"""``subscribePattern`` matches exactly what Java's ``find`` matches, or is rejected.

The table was generated with ``java.util.regex`` of JDK 17 (``Pattern.compile(p).matcher(name).find()``).
"""

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkacore.errors import KafkaConfigurationError
from kafkacore.spark.options.java_classes import ALPHABET
from kafkacore.spark.options.java_regex import compile_java_pattern

NAMES = ("a", "b", "ab", "AB", "a.b", "a-b", "a_b", "12", "Zz", "orders_v2", "__x", "aab")
FOUND_BY_JAVA = [
    (r"a", "a ab a.b a-b a_b aab"),
    (r"^a$", "a"),
    (r"a.b", "a.b a-b a_b aab"),
    (r"a\.b", "a.b"),
    (r"^[a-c]+$", "a b ab aab"),
    (r"^[^a]", "b AB 12 Zz orders_v2 __x"),
    (r"^[a-z&&[^b]]+$", "a"),
    (r"^[a-y&&[^ab]_]", "orders_v2"),
    (r"^[a[12]]+$", "a 12"),
    (r"^[^a&&b]+$", "a b ab AB a.b a-b a_b 12 Zz orders_v2 __x aab"),
    (r"^[\w&&[^_]]+$", "a b ab AB 12 Zz aab"),
    (r"^\p{Lower}+$", "a b ab aab"),
    (r"\p{Upper}", "AB Zz"),
    (r"\pL{3}", "orders_v2 aab"),
    (r"^\P{L}+$", "12"),
    (r"\p{IsAlphabetic}\p{Punct}", "a.b a-b a_b orders_v2"),
    (r"[\p{Punct}&&[^-]]", "a.b a_b orders_v2 __x"),
    (r"\p{javaUpperCase}", "AB Zz"),
    (r"^\Qa.b\E$", "a.b"),
    (r"\x61b", "ab aab"),
    (r"a\u0062", "ab aab"),
    (r"\0101B", "AB"),
    (r"(?i)^ab$", "ab AB"),
    (r"a(?i)B|zZ", "ab Zz aab"),
    (r"(?i:A)b", "ab aab"),
    (r"(?i)a(?-i)b", "ab aab"),
    (r"(?x) a b # both", "ab aab"),
    (r"^a++b", "ab aab"),
    (r"^[a-z]*+b", ""),
    (r"^(?>a|ab)$", "a"),
    (r"(?<n>a)\k<n>", "aab"),
    (r"(a)\1", "aab"),
    (r"(a)\11", ""),
    (r"\d", "12 orders_v2"),
    (r"^\D+$", "a b ab AB a.b a-b a_b Zz __x aab"),
    (r"^\w+$", "a b ab AB a_b 12 Zz orders_v2 __x aab"),
    (r"\W", "a.b a-b"),
    (r"a(?=b)", "ab aab"),
    (r"^(?!a)", "b AB 12 Zz orders_v2 __x"),
    (r"(?<=_)v", "orders_v2"),
    (r"(?<!a)b", "b a.b a-b a_b"),
    (r"^a{2}b", "aab"),
    (r"^.{2}$", "ab AB 12 Zz"),
    (r"^.{3,}?$", "a.b a-b a_b orders_v2 __x aab"),
    (r"\bb", "b a.b a-b"),
    (r"\Ba", "aab"),
    (r"[a-]b", "ab a-b aab"),
    (r"[.]", "a.b"),
    (r"[&_]", "a_b orders_v2 __x"),
    (r"^(?:a|B)", "a ab a.b a-b a_b aab"),
    (r"\h|\s", ""),
    (r"^[\d_]", "12 __x"),
    (r"[^\w]", "a.b a-b"),
    (r"é|a_", "a_b"),
    (r"^(orders|__).*", "orders_v2 __x"),
]


@pytest.mark.parametrize(("pattern", "names"), FOUND_BY_JAVA)
def test_pattern_finds_what_javas_finds(pattern, names):
    compiled = compile_java_pattern(pattern, "subscribePattern")
    assert [name for name in NAMES if compiled.search(name)] == names.split()


@pytest.mark.parametrize(
    "pattern",
    [
        "(", "a)", "[", "[a", "[]", "*a", "a**", "{", "a{", "a{,2}", "a{2,1}", "(?q)", "(?P<n>a)", "(?<1a>b)",
        "\\y", "\\", "\\Gx", "\\R", "\\X", "\\N{DIGIT ONE}", "\\k<n>", "\\p{Foo}", "\\p{lower}", "[z-a]",
        "[a&&]", "(?i)\\p{Lower}", "(?i)é", "(?<=a*)b", "\\2(a)(b)", "(?<n>a)(?<n>b)", "(a\\1)", "(?#c)",
    ],
)  # fmt: skip
def test_what_java_does_not_know_or_python_cannot_follow_is_refused(pattern):
    with pytest.raises(KafkaConfigurationError, match=r"^subscribePattern .*not a supported regular"):
        compile_java_pattern(pattern, "subscribePattern")


@pytest.mark.parametrize("pattern", ["(" * 5_000, "[" * 5_000, "a{999999999}{999999999}", "a" * 10_001])
def test_pattern_without_measure_is_refused(pattern):
    with pytest.raises(KafkaConfigurationError, match=r"^subscribePattern"):
        compile_java_pattern(pattern, "subscribePattern")


@given(st.text(alphabet="ab.[]^-&\\dwpLQE(){}?*+|01,:<>=!ixé ", max_size=20))
def test_any_text_is_a_pattern_or_refused(text):
    with contextlib.suppress(KafkaConfigurationError):
        compile_java_pattern(text, "subscribePattern").search("a-b")


@given(st.text(alphabet=sorted(ALPHABET), min_size=1, max_size=20))
def test_quoted_name_finds_itself(name):
    assert compile_java_pattern(f"^\\Q{name}\\E$", "subscribePattern").search(name)
    assert compile_java_pattern("^" + re.escape(name) + "$", "subscribePattern").search(name)
