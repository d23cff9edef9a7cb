"""API versions and finalized features reported by brokers."""

from __future__ import annotations

from kafkacore.client import ApiVersions, NodeApiVersions
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
