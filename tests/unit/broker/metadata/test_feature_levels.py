"""Feature levels: they survive a restart and a rewrite of the metadata log, and decide what is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from model.broker_harness import BrokerHarness
from model.memory_log import MemoryLog

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.config.features import SAFE_DOWNGRADE, UPGRADE
from kafkacore.broker.metadata.cluster_metadata import ClusterMetadata
from kafkacore.broker.metadata.feature_levels import FeatureLevels, FeatureUpdate
from kafkacore.broker.metadata.metadata_log import FILE_NAME, MetadataLog
from kafkacore.broker.purgatory.change_queue import ChangeQueue
from kafkacore.broker.storage.disk import Disk
from kafkacore.broker.transaction import records
from kafkacore.broker.transaction.transaction_metadata import TransactionMetadata
from kafkacore.errors import InvalidUpdateVersionError, KafkaStorageError
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.init_producer_id import InitProducerIdRequest
from kafkacore.protocol.generated.metadata_records import FeatureLevelRecord
from kafkacore.record import read_batches
from kafkacore.testing import VirtualClock

TV, GV = "transaction.version", "group.version"


def loaded(folder: Path) -> ClusterMetadata:
    clock = VirtualClock()
    log = MetadataLog(folder / FILE_NAME, Disk(), clock)
    metadata = ClusterMetadata(log, ChangeQueue(), clock, lambda *_: None, BrokerConfig(data_dir=folder))
    metadata.load(was_clean=True)
    return metadata


def set_level(metadata: ClusterMetadata, level: int, upgrade_type: int, feature: str = TV) -> None:
    outcomes: list[Any] = []
    update = FeatureUpdate(feature, level, upgrade_type)
    metadata.change(lambda: (metadata.features.update([update], 1), None), outcomes.append)
    assert outcomes == [None]


def test_levels_survive_a_restart(tmp_path: Path) -> None:
    metadata = loaded(tmp_path)
    assert metadata.features.transaction_version == 2
    for level, kind in ((0, SAFE_DOWNGRADE), (1, UPGRADE)):
        set_level(metadata, level, kind)
        metadata.close()
        metadata = loaded(tmp_path)
        assert metadata.features.level(TV) == metadata.features.transaction_version == level
    metadata.close()


def test_level_of_groups_survives_a_restart(tmp_path: Path) -> None:
    metadata = loaded(tmp_path)
    # A data folder of an older broker has no record of the feature either.
    assert metadata.features.group_version == 1
    for level, kind in ((0, SAFE_DOWNGRADE), (1, UPGRADE)):
        set_level(metadata, level, kind, GV)
        metadata.close()
        metadata = loaded(tmp_path)
        assert metadata.features.level(GV) == metadata.features.group_version == level
    metadata.close()


def test_levels_survive_a_rewrite_of_the_log(tmp_path: Path) -> None:
    metadata = loaded(tmp_path)
    set_level(metadata, 1, SAFE_DOWNGRADE)
    assert metadata.features.records() == [FeatureLevelRecord(name=TV, feature_level=1)]
    # A level that was raised again keeps its record, so that the epoch of the features does not go back.
    set_level(metadata, 2, UPGRADE)
    assert metadata.features.records() == [FeatureLevelRecord(name=TV, feature_level=2)]
    metadata.close()


@pytest.mark.parametrize(
    ("feature", "level"), [(TV, 3), (GV, 2), ("metadata.version", 29), ("unknown.version", 1)]
)
def test_level_of_a_newer_broker_stops_the_start(tmp_path: Path, feature: str, level: int) -> None:
    log = MetadataLog(tmp_path / FILE_NAME, Disk(), VirtualClock())
    log.append([FeatureLevelRecord(name=feature, feature_level=level)])
    log.close()
    with pytest.raises(KafkaStorageError, match=f"level {level} of feature {feature} is not supported"):
        loaded(tmp_path)


def test_update_of_several_features_is_all_or_nothing() -> None:
    levels = FeatureLevels()
    updates = [FeatureUpdate(TV, 1, SAFE_DOWNGRADE), FeatureUpdate("share.version", 1, UPGRADE)]
    with pytest.raises(InvalidUpdateVersionError, match=r"update version 1 for feature share\.version"):
        levels.update(updates, 1)
    assert levels.level(TV) == 2


@pytest.mark.parametrize(("level", "version"), [(0, 0), (1, 1), (2, 1)])
def test_transaction_version_decides_the_version_of_records(level: int, version: int) -> None:
    metadata = TransactionMetadata(transactional_id="t", producer_id=7, producer_epoch=0, timeout_ms=1000)
    value = records.transaction_record(metadata, level).value
    assert value is not None
    assert int.from_bytes(value[:2]) == version
    assert records.decode_value("t", value) == metadata


def test_coordinator_writes_records_of_the_level_in_effect(broker: BrokerHarness) -> None:
    broker.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=["t"]))
    versions = []
    for level in (2, 1, 0):
        set_level(broker.services.metadata, level, SAFE_DOWNGRADE if level < 2 else UPGRADE)
        request = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1000)
        answer = broker.send(request, 5)
        broker.settle()
        assert answer.message.error_code == 0
        log = broker.services.transaction_log
        written = broker.log(log.topic.name, log.partition_for("t"))
        versions.append(last_value_of(written)[1])
    assert versions == [1, 1, 0]


def last_value_of(log: MemoryLog) -> bytes:
    (batch,) = read_batches(log.batches[-1][2])
    (record,) = batch
    assert record.value is not None
    return record.value
