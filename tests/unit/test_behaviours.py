"""Each sentence of BEHAVIOURS.md, each case in CASES.md has a test that exists, or says why it has none."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
TABLE = TESTS / "BEHAVIOURS.md"
#: Class → how many sentences there are to be kept.
SENTENCES = {
    "NetworkClient": 11, "Selector": 11, "Sender": 15, "RecordAccumulator": 12, "ProducerBatch": 8,
    "TransactionManager": 21,
    "BufferPool": 9, "Metadata": 11, "ClusterConnectionStates": 14, "InFlightRequests": 6,
    "Fetcher": 14, "ConsumerNetworkClient": 9, "RequestFuture": 6, "FetchSessionHandler": 8,
    "AbstractCoordinator": 11, "ConsumerCoordinator": 14,
    "Reliability": 10, "Broker storage": 21,
}  # fmt: skip

CASES = TESTS / "CASES.md"
#: Kafka's test class → how many cases it has.
CASE_COUNTS = {
    "FetcherTest": 82, "FetchCollectorTest": 21, "CompletedFetchTest": 6, "FetchSessionHandlerTest": 14,
    "ConsumerNetworkClientTest": 19, "RequestFutureTest": 18, "OffsetFetcherTest": 52,
    "SubscriptionStateTest": 47,
    "AbstractCoordinatorTest": 47, "HeartbeatTest": 7, "ConsumerCoordinatorTest": 151,
    "KafkaConsumerTest": 53,
    "LogValidatorTest": 51, "LogCleanerTest": 49, "LogCleanerManagerTest": 31,
    "ClassicGroupTest": 57, "GroupMetadataManagerTest": 133,
    "FetchSessionTest": 25, "DelayedFetchTest": 4, "DelayedOperationTest": 9, "ClientQuotaManagerTest": 14,
    "SslTransportLayerTest": 56, "SaslAuthenticatorTest": 75,
}  # fmt: skip

CASE = re.compile(r"\| (\w+) \| (.+) \|")
ROW = re.compile(r"\| (\d+) \| (.+) \| (.+) \|")
TEST = re.compile(r"`([\w/]+\.py)::(test_\w+)`")


def rows() -> dict[str, list[tuple[int, str, str]]]:
    """Class → number, sentence, tests."""
    found: dict[str, list[tuple[int, str, str]]] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            found[line[3:]] = of_class = []
        elif row := ROW.fullmatch(line):
            of_class.append((int(row[1]), row[2], row[3]))
    return found


@cache
def names_in(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def test_every_sentence_has_its_row_in_order() -> None:
    assert {name: [number for number, _, _ in each] for name, each in rows().items()} == {
        name: list(range(1, count + 1)) for name, count in SENTENCES.items()
    }


@pytest.mark.parametrize("name", SENTENCES)
def test_every_row_names_tests_that_exist_or_what_is_open(name: str) -> None:
    for number, sentence, cell in rows()[name]:
        named = TEST.findall(cell)
        if cell.startswith("*open: "):
            assert not named, f"{number} ({sentence}) is open and has tests"
            continue
        assert TEST.sub("", cell).replace(", ", "") == "", f"{number} ({sentence}): {cell}"
        assert named, f"{number} ({sentence}) names no test"
        for file, test in named:
            assert test in names_in(TESTS / file), f"{number} ({sentence}): there is no {file}::{test}"


def cases() -> dict[str, dict[str, str]]:
    """Kafka's test class → case → tests."""
    found: dict[str, dict[str, str]] = {}
    for line in CASES.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            found[line[3:]] = of_class = {}
        elif (row := CASE.fullmatch(line)) and not row[1].startswith("case"):
            assert row[1] not in of_class, row[1]
            of_class[row[1]] = row[2]
    return found


def test_every_case_of_kafkas_test_classes_has_its_row() -> None:
    assert {name: len(each) for name, each in cases().items()} == CASE_COUNTS


@pytest.mark.parametrize("name", CASE_COUNTS)
def test_every_case_names_tests_that_exist_or_why_there_is_none(name: str) -> None:
    of_class = cases()[name]
    for case, cell in of_class.items():
        named = TEST.findall(cell)
        if cell.startswith(("*none: ", "*open: ")):
            assert not named, case
            continue
        assert named, case
        assert TEST.sub("", cell).replace(", ", "") == "", f"{case}: {cell}"
        for file, test in named:
            assert test in names_in(TESTS / file), f"{case}: there is no {file}::{test}"
