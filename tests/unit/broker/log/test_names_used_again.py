"""A topic with the name of a deleted one, and log start offsets: deleted records never come back."""

from __future__ import annotations

from uuid import UUID

import pytest
from model.log_oracle import NOW_MS, TP, batch, clock, make_log, open_manager, read_all, the_log

from kafkacore.testing.disk import SimulatedDisk

CONFIG = {"segment_bytes": 300}


@pytest.mark.parametrize("end", ["kill", "power"])
def test_topic_made_anew_does_not_begin_where_its_predecessor_did(end: str) -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk)
    log = make_log(manager)
    for _ in range(9):
        log.append(batch([b"old"]), now_ms=NOW_MS)
    manager.flush_dirty()
    manager.delete_records(TP, 7)
    manager.delete_topic(TP.topic)
    manager.create_topic(TP.topic, 1, UUID(int=8), {})
    log = the_log(manager)
    for _ in range(3):
        log.append(batch([b"new"]), now_ms=NOW_MS)
    manager.flush_dirty()
    assert log.high_watermark == 3, "acknowledged"
    for seed in range(5):
        found = disk.copy().lose_power(clock(seed)) if end == "power" else disk.copy()
        log = the_log(open_manager(found))
        assert (log.log_start_offset, [record.value for record in read_all(log)]) == (0, [b"new"] * 3)


@pytest.mark.parametrize("before", range(1, 12))
def test_log_start_that_was_asked_for_survives_a_loss_of_power(before: int) -> None:
    for seed in range(10):
        disk = SimulatedDisk()
        manager = open_manager(disk, **CONFIG)
        log = make_log(manager)
        for index in range(12):
            log.append(batch([b"value %d" % index]), now_ms=NOW_MS)
        manager.flush_dirty()
        assert manager.delete_records(TP, before) == before
        log = the_log(open_manager(disk.lose_power(clock(seed)), **CONFIG))
        assert (log.log_start_offset, log.log_end_offset) == (before, 12)
