"""The table of codecs is complete, and no other source file lists codecs."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from kafkacore.broker.config.topic_config import TOPIC_CONFIG, checked_topic_configs
from kafkacore.broker.log.config import LogConfig
from kafkacore.errors import InvalidConfigurationError
from kafkacore.producer import KafkaProducer
from kafkacore.record import Compression
from kafkacore.record.compression import CODECS, Codec
from kafkacore.structs import CODEC_NAMES

SOURCE = Path(__file__).resolve().parents[2] / "src" / "kafkacore"
#: The two files to change for a new codec.
TABLES = {"structs.py", "record/compression.py"}
#: First line of a generated module, which ``tools/settings.py --check`` compares with the tables.
GENERATED = "written by tools/settings.py"
#: Parsing takes long, and few modules contain the names of two codecs.
CODEC_NAME = re.compile("|".join(CODEC_NAMES))
QUOTED = re.compile(r"""["'](\w+)["']""")

every_codec = pytest.mark.parametrize("codec", CODECS.values(), ids=CODEC_NAMES)
codecs_with_levels = pytest.mark.parametrize(
    "codec", [codec for codec in CODECS.values() if codec.levels], ids=lambda codec: codec.name
)


def codecs_named_in(text: str, *, is_python: bool) -> set[str]:
    """Return the codecs that a module names as a string or a member of ``Compression``."""
    named = {name.lower() for name in re.findall(r"\bCompression\.([A-Z0-9]+)\b", text)}
    if is_python:
        nodes = ast.walk(ast.parse(text))
        named |= {str(node.value) for node in nodes if isinstance(node, ast.Constant)}
    else:
        named |= set(QUOTED.findall(text))
    return named & set(CODEC_NAMES)


def test_no_other_source_file_lists_codecs() -> None:
    lists = {}
    for path in sorted(SOURCE.rglob("*.py*")):
        place = str(path.relative_to(SOURCE))
        if path.suffix not in (".py", ".pyx", ".pxd") or place in TABLES:
            continue
        text = path.read_text(encoding="utf-8")
        if GENERATED in text.partition("\n")[0] or len(set(CODEC_NAME.findall(text.lower()))) < 2:
            continue
        named = codecs_named_in(text, is_python=path.suffix == ".py")
        if len(named) > 1:
            lists[place] = named
    assert not lists, "take the codecs from structs.Compression or record.compression.CODECS"


@pytest.mark.parametrize(
    ("text", "is_python", "named"),
    [
        ('X = ("gzip", "snappy")', True, {"gzip", "snappy"}),
        ("X = {Compression.GZIP: 1, Compression.LZ4: 2}", True, {"gzip", "lz4"}),
        ("cdef X = {'zstd': 1, 'lz4': 2}", False, {"zstd", "lz4"}),
        ('"""Such as gzip or lz4."""\nX = "compression.zstd.level"', True, set()),
    ],
)
def test_a_list_of_codecs_is_found(text: str, is_python: bool, named: set[str]) -> None:
    assert codecs_named_in(text, is_python=is_python) == named


def test_table_has_every_codec_in_order() -> None:
    assert list(CODECS) == [codec for codec in Compression if codec is not Compression.NONE]
    assert tuple(codec.name for codec in CODECS.values()) == CODEC_NAMES


def test_first_versions_are_those_of_kafka() -> None:
    """Codec zstd needs message format 2, Produce 7 and Fetch 10 (KIP-110). The other codecs are older."""
    versions = {
        codec.name: (codec.min_magic, codec.min_produce_version, codec.min_fetch_version)
        for codec in CODECS.values()
    }
    assert versions == {"gzip": (0, 0, 0), "snappy": (0, 0, 0), "lz4": (0, 0, 0), "zstd": (2, 7, 10)}


@every_codec
def test_codec_is_named_in_the_producers_documentation(codec: Codec) -> None:
    assert f'"{codec.name}"' in (KafkaProducer.__doc__ or "")


@codecs_with_levels
def test_topics_have_the_levels_of_the_table(codec: Codec) -> None:
    name, levels = f"compression.{codec.name}.level", codec.levels
    assert levels is not None
    assert TOPIC_CONFIG[name].default == str(levels.default)
    for level in (levels.lowest, levels.highest, levels.default):
        assert checked_topic_configs({name: str(level)}) == {name: str(level)}
    for level in (levels.lowest - 1 if levels.lowest - 1 != levels.default else -2, levels.highest + 1):
        with pytest.raises(InvalidConfigurationError):
            checked_topic_configs({name: str(level)})


@codecs_with_levels
def test_log_keeps_a_level_that_is_not_the_default(codec: Codec) -> None:
    assert codec.levels is not None
    name = f"compression.{codec.name}.level"
    changed = LogConfig.from_configs({name: str(codec.levels.highest)})
    assert changed.compression_levels == {codec.id: codec.levels.highest}
    assert LogConfig.from_configs({"retention.ms": "1"}, base=changed).compression_levels == {
        codec.id: codec.levels.highest
    }
    back = LogConfig.from_configs({name: str(codec.levels.default)}, base=changed)
    assert back == LogConfig()
    with pytest.raises(InvalidConfigurationError, match=f"Invalid value high for configuration {name}"):
        LogConfig.from_configs({name: "high"})


def test_codec_without_levels_has_no_topic_setting() -> None:
    without = {f"compression.{codec.name}.level" for codec in CODECS.values() if codec.levels is None}
    assert not without & set(TOPIC_CONFIG)
