"""API versions and finalized features reported by brokers."""

from __future__ import annotations

import pytest
from kafka.protocol.broker_version_data import BROKER_API_VERSIONS, BrokerVersionData

from kafkacore.broker.handlers.registry import HANDLERS
from kafkacore.client import ApiVersions, NodeApiVersions
from kafkacore.client.broker_version import broker_version
from kafkacore.protocol.generated.api_versions import ApiVersionsResponse


def versions(epoch: int, **features: int) -> NodeApiVersions:
    return NodeApiVersions(
        ApiVersionsResponse(
            finalized_features_epoch=epoch,
            finalized_features=[
                ApiVersionsResponse.FinalizedFeatureKey(
                    name=name, max_version_level=level, min_version_level=1
                )
                for name, level in features.items()
            ],
        )
    )


def test_the_newest_finalized_features_of_any_broker_count() -> None:
    known = ApiVersions()
    known.update(1, versions(7, transactions=2))
    known.update(2, versions(6, transactions=1))
    assert known.finalized_features == {"transactions": 2}
    known.update(3, versions(8, transactions=3))
    assert known.finalized_features == {"transactions": 3}


def test_finalized_features_stay_known_without_a_connection() -> None:
    known = ApiVersions()
    known.update(1, versions(7, transactions=2))
    known.remove(1)
    assert known.finalized_features == {"transactions": 2}


def test_a_broker_that_says_nothing_of_features_has_none() -> None:
    known = ApiVersions()
    known.update(1, NodeApiVersions(ApiVersionsResponse()))
    assert known.finalized_features == {}


@pytest.mark.parametrize("release", [each for each in BROKER_API_VERSIONS if each >= (0, 10, 0)])
def test_release_of_a_broker_follows_from_its_api_versions(release: tuple[int, ...]) -> None:
    newest = {key: versions[1] for key, versions in BROKER_API_VERSIONS[release].items()}
    assert broker_version(newest) == release


def test_embedded_broker_has_the_release_that_kafka_python_concludes() -> None:
    ranges = {each.request_class.API_KEY: (each.min_version, each.max_version) for each in HANDLERS}
    theirs = BrokerVersionData(api_versions=ranges).broker_version
    assert broker_version({key: newest for key, (_, newest) in ranges.items()}) == theirs


def test_release_of_the_first_broker_is_reported_once() -> None:
    releases: list[tuple[int, ...]] = []
    known = ApiVersions()
    known.on_first = releases.append
    known.update(1, api_versions(produce=12))
    known.update(2, api_versions(produce=3))
    assert releases == [(4, 0)]


def api_versions(produce: int) -> NodeApiVersions:
    row = ApiVersionsResponse.ApiVersion(api_key=0, min_version=0, max_version=produce)
    return NodeApiVersions(ApiVersionsResponse(api_keys=[row]))
