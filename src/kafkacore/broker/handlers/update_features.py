"""UpdateFeatures: change the finalized levels of features (KIP-584, KIP-778).

Versions 0 to 2. When the response is sent, the levels are on disk and in effect. The levels that the broker
supports are in :data:`~kafkacore.broker.config.features.FEATURES`.
"""

from __future__ import annotations

from kafkacore.access_control import ACLOperation
from kafkacore.broker.config.features import SAFE_DOWNGRADE, UPGRADE
from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.handlers.services import (
    ANSWERED_LATER,
    AnsweredLater,
    ApiHandler,
    QuorumServices,
    Request,
)
from kafkacore.broker.metadata.feature_levels import FeatureUpdate
from kafkacore.broker.metadata.records import MetadataRecord
from kafkacore.broker.requests.authorization import require_cluster
from kafkacore.errors import BrokerResponseError
from kafkacore.protocol.generated.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

LAST_VERSION_WITH_RESULTS = 1
#: Requests of earlier versions have the field ``allow_downgrade`` instead.
FIRST_VERSION_WITH_UPGRADE_TYPE = 1


def handle(
    request: Request[UpdateFeaturesRequest], services: QuorumServices
) -> UpdateFeaturesResponse | AnsweredLater:
    metadata, message = services.metadata, request.message
    try:
        require_cluster(request, services, ACLOperation.ALTER)
    except BrokerResponseError as error:
        return _refused(error)

    def plan() -> tuple[list[MetadataRecord], None]:
        records = metadata.features.update(updates, services.cluster.controller_id)
        return ([] if message.validate_only else [*records]), None

    def on_done(outcome: Exception | None) -> None:
        if outcome is not None:
            request.respond(_refused(outcome))
            return
        results = updates if request.version <= LAST_VERSION_WITH_RESULTS else []
        request.respond(
            UpdateFeaturesResponse(
                error_message=None,
                results=[
                    UpdateFeaturesResponse.UpdatableFeatureResult(feature=update.feature, error_message=None)
                    for update in results
                ],
            )
        )

    updates = _updates(message, request.version)
    metadata.change(plan, on_done)
    return ANSWERED_LATER


def _updates(message: UpdateFeaturesRequest, version: int) -> list[FeatureUpdate]:
    has_type = version >= FIRST_VERSION_WITH_UPGRADE_TYPE
    return [
        FeatureUpdate(
            each.feature,
            each.max_version_level,
            each.upgrade_type if has_type else (SAFE_DOWNGRADE if each.allow_downgrade else UPGRADE),
        )
        for each in message.feature_updates
    ]


def _refused(error: Exception) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_code=error_code(error), error_message=error_message(error))


HANDLER = ApiHandler(UpdateFeaturesRequest, 0, 2, handle)
