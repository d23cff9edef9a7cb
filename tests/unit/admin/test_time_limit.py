"""The time limit of a call, in virtual time."""

from __future__ import annotations

import pytest

from kafkacore.admin import KafkaAdminClient, OffsetSpec, kafka_admin_client
from kafkacore.admin.time_limit import TimeLimit
from kafkacore.errors import KafkaTimeoutError
from kafkacore.structs import TopicPartition
from kafkacore.testing import VirtualClock
from kafkacore.testing.mock_client import MockClient


def test_remaining_time_shrinks_and_then_raises() -> None:
    clock = VirtualClock()
    limit = TimeLimit(clock, 1_000)
    clock.advance(400)
    assert limit.left_ms == 600
    clock.advance(600)
    with pytest.raises(KafkaTimeoutError, match="took longer than timeout_ms=1000"):
        _ = limit.left_ms


@pytest.mark.parametrize("is_connected", [True, False])
def test_calls_of_several_requests_have_one_time_limit(
    is_connected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers that answer nothing, or that cannot be reached any more."""
    mock = MockClient(topics={"t": 1})
    mock.connect()
    monkeypatch.setattr(
        kafka_admin_client, "bootstrap_client", lambda config, clock: (mock.client, mock.metadata)
    )
    with KafkaAdminClient(bootstrap_servers="node0:9092", clock=mock.clock) as admin:
        if not is_connected:
            mock.selector.silent.add("ip-node0")
            mock.disconnect(0)
        for call in (
            lambda: admin.list_groups(timeout_ms=1_000),
            lambda: admin.describe_groups(["g"], timeout_ms=1_000),
            lambda: admin.list_transactions(timeout_ms=1_000),
            lambda: admin.describe_log_dirs(["t"], timeout_ms=1_000),
            lambda: admin.elect_leaders(0, timeout_ms=1_000),
            lambda: admin.reset_group_offsets(
                "g", {TopicPartition("t", 0): OffsetSpec.LATEST}, timeout_ms=1_000
            ),
        ):
            before_ms = mock.clock.monotonic_ms()
            with pytest.raises(KafkaTimeoutError, match=r"ms|timeout_ms"):
                call()
            assert mock.clock.monotonic_ms() - before_ms <= 1_100
