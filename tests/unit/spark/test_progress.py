"""Lag of a query computed from Spark's progress: the built-in source's three metrics."""

import json

import pytest

import kafkacore.spark
from kafkacore.errors import KafkaConfigurationError
from kafkacore.spark import lag
from kafkacore.structs import TopicPartition


def source(end, latest):
    return {"startOffset": None, "endOffset": end, "latestOffset": latest, "numInputRows": 1}


BEHIND = source({"t": {"0": 10, "1": 5}}, {"t": {"0": 17, "1": 5}})


def test_lag_is_by_partition_and_as_the_builtin_source_says_it():
    found = lag({"sources": [BEHIND]})
    assert found.partitions == {TopicPartition("t", 0): 7, TopicPartition("t", 1): 0}
    assert (found.total, found.average, found.maximum, found.minimum) == (7, 3.5, 7, 0)
    assert found.metrics() == {
        "avgOffsetsBehindLatest": "3.5",
        "maxOffsetsBehindLatest": "7",
        "minOffsetsBehindLatest": "0",
    }


class Progress:
    """A progress as in PySpark 3: an object with a ``json`` attribute."""

    json = json.dumps({"sources": [BEHIND]})


TEXTS = source(json.dumps(BEHIND["endOffset"]), json.dumps(BEHIND["latestOffset"]))


@pytest.mark.parametrize(
    "progress", [Progress(), Progress.json, {"sources": [TEXTS]}, BEHIND, json.dumps(TEXTS)]
)
def test_lag_takes_a_progress_in_every_form(progress):
    assert lag(progress).total == 7


def test_worst_of_two_sources_counts_and_others_are_left_out():
    rate = source(41, 42)
    files = source({"logOffset": 3}, {"logOffset": 4})
    further = source({"t": {"0": 1}}, {"t": {"0": 17}})
    found = lag({"sources": [BEHIND, rate, further, files]})
    assert found.partitions == {TopicPartition("t", 0): 16, TopicPartition("t", 1): 0}


def test_new_partition_counts_from_zero_and_none_is_ahead():
    found = lag({"sources": [source({"t": {"0": 10}}, {"t": {"0": 4, "1": 3}})]})
    assert found.partitions == {TopicPartition("t", 0): 0, TopicPartition("t", 1): 3}


@pytest.mark.parametrize(
    "progress",
    [
        None,
        {"sources": []},
        {"sources": [source({"t": {"0": 1}}, None)]},
        {"sources": [source(None, {"t": {"0": 1}})]},
        {"sources": [source("null", "null")]},
        {"sources": [source("[" * 100_000, "{}")]},
        {"sources": ["?"]},
        {"sources": [source({"t": 1}, {"t": {"0": 1}})]},
    ],
)
def test_without_kafkas_offsets_nothing_is_known(progress):
    assert lag(progress) is None


@pytest.mark.parametrize("progress", ["{", "[]", "[" * 100_000, 7, object()])
def test_what_is_no_progress_is_told(progress):
    with pytest.raises(KafkaConfigurationError, match=r"such as query\.lastProgress"):
        lag(progress)


def test_package_has_only_the_names_that_it_says():
    assert all(getattr(kafkacore.spark, name) for name in kafkacore.spark.__all__)
    with pytest.raises(AttributeError, match="lags"):
        kafkacore.spark.lags  # noqa: B018
