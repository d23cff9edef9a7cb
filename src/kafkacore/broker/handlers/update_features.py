"""UpdateFeatures: accept the feature levels in effect and refuse all others (KIP-584, KIP-778).

Versions 0 to 2. No feature level of this broker can be changed.
"""

from __future__ import annotations

from kafkacore.broker.config.features import refusal
from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.handlers.services import ApiHandler, Request
from kafkacore.broker.requests.authorization import AuthorizationServices, require_cluster
from kafkacore.errors import BrokerResponseError, InvalidUpdateVersionError
from kafkacore.protocol.generated.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from kafkacore.structs import ACLOperation, printable

LAST_VERSION_WITH_RESULTS = 1


def handle(
    request: Request[UpdateFeaturesRequest], services: AuthorizationServices
) -> UpdateFeaturesResponse:
    updates = request.message.feature_updates
    try:
        require_cluster(request, services, ACLOperation.ALTER)
        for update in updates:
            reason = refusal(update.feature, update.max_version_level, update.upgrade_type)
            if reason is not None:
                raise InvalidUpdateVersionError(
                    "The update failed for all features since the following feature had an error: Invalid "
                    f"update version {update.max_version_level} for feature {printable(update.feature)}. "
                    f"{reason}"
                )
    except BrokerResponseError as error:
        return UpdateFeaturesResponse(error_code=error_code(error), error_message=error_message(error))
    results = updates if request.version <= LAST_VERSION_WITH_RESULTS else ()
    return UpdateFeaturesResponse(
        error_message=None,
        results=[
            UpdateFeaturesResponse.UpdatableFeatureResult(feature=update.feature, error_message=None)
            for update in results
        ],
    )


HANDLER = ApiHandler(UpdateFeaturesRequest, 0, 2, handle)
