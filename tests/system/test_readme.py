"""What README.md shows runs as it stands: its Python in order, and its commands as far as their arguments."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from peers.shown_code import page_blocks, run_readme

from kafkacore.cli.main import build_parser
from kafkacore.testing.embedded_broker import EmbeddedBroker

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "SECURITY.md", *(f"docs/{page.name}" for page in sorted((ROOT / "docs").glob("*.md")))]


def test_blocks_run_in_order_on_a_new_broker(kafka_broker, kafka_proxy, kafka_cluster, capsys) -> None:
    with EmbeddedBroker() as broker:
        names = run_readme(broker.bootstrap_servers)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("RecordMetadata(topic='greetings', partition=0, ")
    assert lines[1:] == [
        "0 0 b'k' b'hello'",
        "0 1 b'k' b'hello'",
        "0 2 None b'world'",
        "0 3 None b'column'",
        "billed b'2 apples'",
        "billed b'1 pear'",
        "billed b'2 apples'",
    ]
    assert list(names["offsets"]) == [3]
    assert sum(table.num_rows for table in names["tables"]) == 4
    # The tests that it shows, with the fixtures that pytest would give them.
    names["test_my_program"](kafka_broker)
    names["test_my_program_on_a_bad_network"](kafka_proxy)
    names["test_my_program_when_leaders_move"](kafka_cluster)


def test_block_that_is_not_run_says_why() -> None:
    """And the test that runs it exists."""
    reasons = [block.why_not_run for block in page_blocks("README.md", {}) if block.why_not_run is not None]
    assert len(reasons) == 4
    for reason in reasons:
        assert (ROOT / re.search(r"tests/\S+\.py", reason)[0]).exists()


def commands(page: str) -> list[str]:
    whole = (ROOT / page).read_text().replace("\\\n", " ")
    # One per line, also after variables; what leaves something out is not a command.
    lines = re.findall(r"^    (?:\w+=\S+ )*kafkacore ([^|<>\n]*)", whole, re.MULTILINE)
    return [line for line in lines if "..." not in line and "…" not in line]


@pytest.mark.parametrize("page", PAGES)
def test_every_command_that_is_shown_is_understood(page: str) -> None:
    found = commands(page)
    assert found or page != "README.md"
    for line in found:
        build_parser().parse_args(shlex.split(line, comments=True))
