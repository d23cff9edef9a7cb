"""Durable writes on macOS, where fsync does not flush the cache of the drive."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkacore.broker.storage import disk as disk_module
from kafkacore.broker.storage.disk import Disk

FULL_SYNC = 51


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(disk_module, "FULL_SYNC", FULL_SYNC)
    monkeypatch.setattr(fcntl, "fcntl", lambda fd, command: found.append(f"fcntl {command}"))
    monkeypatch.setattr(os, "fsync", lambda fd: found.append("fsync"))
    monkeypatch.setattr(os, "fdatasync", lambda fd: found.append("fdatasync"), raising=False)
    return found


@pytest.fixture(params=["file", "folder"])
def sync(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], None]]:
    disk = Disk()
    if request.param == "folder":
        yield lambda: disk.fsync_dir(tmp_path)
        return
    fd = disk.open(tmp_path / "file", create=True)
    yield lambda: disk.fdatasync(fd)
    disk.close(fd)


def refuse(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def fail(*arguments: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "fcntl", fail)


def test_the_cache_of_the_drive_is_flushed(sync: Callable[[], None], calls: list[str]) -> None:
    sync()
    assert calls == [f"fcntl {FULL_SYNC}"]


@pytest.mark.parametrize("number", [errno.ENOTSUP, errno.ENOTTY, errno.EINVAL])
def test_a_volume_that_cannot_flush_the_cache_is_synced(
    sync: Callable[[], None], calls: list[str], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    refuse(monkeypatch, number)
    sync()
    assert calls == ["fsync"]


def test_an_error_of_the_drive_is_not_hidden(
    sync: Callable[[], None], calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failed write, a second sync would succeed although the data is lost."""
    refuse(monkeypatch, errno.EIO)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        sync()
    assert calls == []
