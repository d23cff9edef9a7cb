"""JSON documents and schemas for tests of JSON readers: of every type, valid, almost valid and broken.

They are generated from a seed, so that two readers get the same input. Spark's from_json and Python's json
are the references.
"""

from __future__ import annotations

import random
from collections.abc import Callable

#: Schemas in Spark's DDL. They have the same fields, so that every document contains data for each of them.
SCHEMAS = (
    "a int, b string, c double, d boolean, e bigint",
    "a tinyint, b smallint, c float, d decimal(10,2), e decimal(38,18)",
    "a date, b timestamp, c timestamp_ntz, d binary, e string",
    "a struct<a:int,b:string,c:array<int>>, b array<bigint>, c map<string,int>, d int, e string",
    "a array<struct<a:int,b:string>>, b map<string,struct<a:int,d:date>>, c array<array<double>>, e int",
    "a struct<a:struct<a:struct<e:string>>>, b map<string,array<string>>, e map<string,map<string,int>>",
    "e string, zz int, a string, b binary",
)
NAMES = ["a", "b", "c", "d", "e", "zz", "other", "", "é", "a b"]
NUMBERS = [
    "0",
    "-0",
    "1",
    "-1",
    "7",
    "42",
    "127",
    "128",
    "255",
    "256",
    "-128",
    "-129",
    "32767",
    "32768",
    "-32769",
    "2147483647",
    "2147483648",
    "-2147483648",
    "-2147483649",
    "999999999",
    "1000000000",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "123456789012345678901234567890",
    "0.0",
    "-0.0",
    "1.0",
    "1.5",
    "-2.25",
    "0.1",
    "1e3",
    "1E+2",
    "1.5e-3",
    "1e400",
    "-1e400",
    "1e-400",
    "1e22",
    "123456.789",
    "12345678.995",
    "99999999.994",
    "99999999.995",
    "0.005",
    "-0.005",
    "3.4028235e38",
    "3.4028236e38",
    "16777217",
    "16777217.0",
    "9007199254740993",
    "9007199254740993.0",
    "0.30000000000000004",
    "1.7976931348623157e308",
    "2.2250738585072014e-308",
    "4.9e-324",
    "1e99999",
    "1e-99999",
    "0e5",
    "1577934245",
    "9223372036854",
    "100.0",
    "1e7",
    "0.001",
    "1234567.0",
    "NaN",
    "Infinity",
    "-Infinity",
    "+INF",
    "-INF",
    "+Infinity",
]
#: Tokens that resemble numbers but are invalid.
ODD = [
    "01",
    "+1",
    "1.",
    ".5",
    "-",
    "1e",
    "1x",
    "tru",
    "nul",
    "INF",
    "nan",
    "truex",
    "--1",
    "1.5.5",
    "0x10",
    "1e+",
]
TEXTS = [
    "",
    "x",
    "text",
    "1",
    "1.5",
    "-7",
    "NaN",
    "INF",
    "+INF",
    "-Infinity",
    "true",
    "null",
    "1,234.5",
    "+5",
    ".5",
    "5.",
    "1e2",
    "2020-01-02",
    "2020-1-2",
    "2020",
    "2020-02",
    "02020-01-01",
    "123456-01-01",
    "-0001-01-01",
    "0000-00-01",
    "2021-02-29",
    "2020-02-29",
    " 2020-01-02 ",
    "2020-01-02 x",
    "18262",
    "00000000018262",
    "99999999999",
    "0001-01-01",
    "9999-12-31T23:59:59.999999Z",
    "-1",
    "20200102",
    "2020-01-02T03:04:05",
    "2020-01-02 03:04:05.123456789",
    "2020-01-02T03:04:05.5Z",
    "2020-01-02T03:04:05+01:00",
    "2020-01-02T03:04:05 +1:00",
    "2020-01-02T03:04:05Europe/Paris",
    "2020-01-02T03:04:05 America/New_York",
    "2020-01-02T03:04:05GMT+01:00",
    "2020-01-02T24:00:00",
    "2020-01-02T03:04",
    "2020-01-02T03",
    "2020-01-02T",
    "2020-01-02T03:04:05.",
    "2020-01-02T03:04:05UTC+2",
    "2020-01-02T03:04:05 PST",
    "2020-01-02T03:04:05+19:00",
    "2020-01-02T03:04:05+0100",
    "2020-01-02T03:04:05-01:3",
    "2020-01-02T03:04:05z",
    "2020-03-29T02:30:00Europe/Paris",
    "2020-10-25T02:30:00 Europe/Paris",
    "1850-01-01T00:00:00Europe/Paris",
    "294247-01-10T04:00:54.775807Z",
    "294247-01-10T04:00:54.775808Z",
    "1969-12-31T23:59:59.999999Z",
    "1582-10-10",
    "2020-01-02T03:04:05.123GMT",
    "3000-07-01T00:00:00 Europe/Berlin",
    "12000-07-01T00:00:00 Europe/Berlin",
    "aGk=",
    "aGk",
    "aGkx",
    "a$",
    "aGk==",
    "-_",
    "////",
    " aGk= ",
    "aGkxaGk=",
    "hello world",
    "aG==",
]
#: Raw text to be placed between quotes.
RAW_TEXTS = [
    r"\u0041\n\t\/\\\"\b\f\r",
    r"\ud83d\ude00",
    r"\ud83d",
    r"\ude00x",
    r"\ud83dx",
    r"\ud83d\ud83d\ude00",
    "é😀",
    "\x7f",
    r"\u0000",
    r"\u00e9\u20ac",
    r"\u0032020-01-02",
    r"\u0061Gk=",
    r"a\'b",
    r"aGkx\naGk=",
    "long " * 20,
    "é" * 17,
]
BROKEN_TEXTS = [r"a\qb", r"\u12", "tab\there", r"\u12g4", "\x00", "new\nline"]
SPACES = ["", "", "", "", " ", "\n", "\t \r"]


class Maker:
    """Generates documents in which ``broken`` of 1000 tokens are invalid JSON."""

    def __init__(self, seed: int, broken: int = 3) -> None:
        self.chance = random.Random(seed)
        self.broken = broken

    def space(self) -> str:
        return self.chance.choice(SPACES)

    def text(self) -> str:
        chance = self.chance
        if chance.randrange(1000) < self.broken:
            return f'"{chance.choice(BROKEN_TEXTS)}"'
        inside = chance.choice(RAW_TEXTS) if chance.random() < 0.2 else chance.choice(TEXTS)
        return f"'{inside}'" if chance.random() < 0.03 else f'"{inside}"'

    def number(self) -> str:
        chance = self.chance
        if chance.randrange(1000) < self.broken:
            return chance.choice(ODD)
        kind = chance.random()
        if kind < 0.3:
            return str(chance.randrange(-(10 ** chance.randrange(1, 20)), 10 ** chance.randrange(1, 20)))
        if kind < 0.4:
            return repr(chance.uniform(-1, 1) * 10.0 ** chance.randrange(-30, 30))
        return chance.choice(NUMBERS)

    def items(self, depth: int, item: Callable[[int], str], brackets: str) -> str:
        chance = self.chance
        separator = "," if chance.randrange(1000) >= self.broken else chance.choice(["", ",,", ";", " "])
        inside = separator.join(item(depth) for _ in range(chance.randrange(4)))
        return f"{brackets[0]}{self.space()}{inside}{self.space()}{brackets[1]}"

    def member(self, depth: int) -> str:
        name = self.chance.choice(NAMES)
        if name and self.chance.random() < 0.05:
            name = f"\\u{ord(name[0]):04x}{name[1:]}"
        return f'{self.space()}"{name}"{self.space()}:{self.value(depth)}'

    def value(self, depth: int) -> str:
        kind = self.chance.random()
        if kind < 0.3:
            made = self.number()
        elif kind < 0.6:
            made = self.text()
        elif kind < 0.7:
            made = self.chance.choice(["true", "false", "null"])
        elif depth <= 0:
            made = "1"
        elif kind < 0.87:
            made = self.items(depth - 1, self.member, "{}")
        elif kind < 0.95:
            # All items have one type, as in real arrays.
            item = self.chance.choice([lambda _: str(self.chance.randrange(9)), lambda _: self.text()])
            made = self.items(depth - 1, item, "[]")
        else:
            made = self.items(depth - 1, self.value, "[]")
        return f"{self.space()}{made}{self.space()}"

    def document(self) -> bytes:
        chance = self.chance
        members = ",".join(self.member(4) for _ in range(chance.randrange(7)))
        made = f"{self.space()}{{{members}}}".encode()
        kind = chance.random()
        if kind < 0.03:
            made = chance.choice(
                [b"", b"  ", b"null", b"[]", b"1", b'"x"', b"[{}]", b"\xef\xbb\xbf{}", b"{} x", b"{"]
            )
        elif kind < 0.08 and made:
            at = chance.randrange(len(made))
            made = (
                made[:at]
                + chance.choice([b"", bytes([chance.randrange(256)]), b",", b'"', b"}"])
                + made[at + 1 :]
            )
        elif kind < 0.10:
            made = made[: chance.randrange(len(made) + 1)]
        elif kind < 0.12:
            made += chance.choice([b" ", b"}", b"x", b"{}", b"\x00"])
        return made


def documents(count: int, seed: int) -> list[bytes]:
    maker = Maker(seed)
    return [maker.document() for _ in range(count)]
