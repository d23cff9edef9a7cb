"""Metrics and reporters of the admin client."""

from __future__ import annotations

from typing import Any, ClassVar

from kafkacore import KafkaAdminClient
from kafkacore.metrics import DictReporter, KafkaMetric
from kafkacore.testing import EmbeddedBroker


class Recorder(DictReporter):
    """A reporter whose classes share the names that it was notified of."""

    names: ClassVar[set[str]] = set()

    def metric_change(self, metric: KafkaMetric) -> None:
        self.names.add(metric.metric_name.name)
        super().metric_change(metric)


def test_admin_client_counts_requests_and_notifies_reporters(our_broker: EmbeddedBroker) -> None:
    settings: dict[str, Any] = {"bootstrap_servers": our_broker.bootstrap_servers}
    with KafkaAdminClient(**settings, metric_reporters=[Recorder]) as admin:
        before = admin.metrics()["admin-metrics"]["request-total"]
        admin.list_topics()
        assert admin.metrics()["admin-metrics"]["request-total"] > before
        assert {metric.name for metric in admin.metrics(raw=True)} >= {"connection-count", "request-total"}
        assert "request-total" in Recorder.names
    assert admin.metrics() == {}
    with KafkaAdminClient(**settings, metrics_enabled=False) as admin:
        assert admin.metrics() is None
