"""A broker that cannot start says in one sentence why, and what to change."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from kafkacore.broker.config import BrokerConfig
from kafkacore.broker.disk import Disk
from kafkacore.broker.server import KafkaBroker
from kafkacore.broker.start_errors import BrokerStartError


class RefusingDisk(Disk):
    """Refuses to make or write anything."""

    def __init__(self, number: int) -> None:
        self._number = number

    def write_file(self, path: Path, data: bytes) -> None:
        raise OSError(self._number, os.strerror(self._number), str(path))


def sentence(folder: Path, disk: Disk | None = None, **config: object) -> str:
    with pytest.raises(BrokerStartError) as refused:
        KafkaBroker(BrokerConfig(**{"data_dir": folder, "port": 0, **config}), disk=disk).start()
    return str(refused.value.args[0])


def test_taken_port_is_named_with_a_way_out(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = sentence(tmp_path, port=port)
    assert f"cannot listen on 127.0.0.1:{port}: another program listens there" in said
    assert "--listen 127.0.0.1:0" in said


def test_address_that_this_machine_does_not_have_is_named(tmp_path: Path) -> None:
    assert "this machine has no address 192.0.2.7" in sentence(tmp_path, host="192.0.2.7", allow_remote=True)


def test_host_that_is_not_known_is_named(tmp_path: Path) -> None:
    said = sentence(tmp_path, host="no-such-host.invalid", allow_remote=True)
    assert "the name no-such-host.invalid is not known here" in said


def test_file_in_the_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "kafka").write_text("")
    assert "it is a file, and a folder is needed" in sentence(tmp_path / "kafka")
    assert "it is a file, and a folder is needed" in sentence(tmp_path / "kafka" / "data")


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the disk is full; make room on it and start again"),
        (errno.EDQUOT, "the disk is full"),
        (errno.EACCES, "let the broker's user write there"),
        (errno.EROFS, "Read-only file system: name another folder (--data-dir)"),
        (errno.ENOENT, "No such file or directory: name another folder (--data-dir)"),
        (errno.EMFILE, "ulimit -n"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_folder_that_refuses_is_named_with_the_reason(tmp_path: Path, number: int, words: str) -> None:
    said = sentence(tmp_path, disk=RefusingDisk(number))
    assert words in said
    assert str(tmp_path) in said


def test_folder_is_named_once_if_it_is_the_folder_itself(tmp_path: Path) -> None:
    (tmp_path / "kafka").write_text("")
    assert sentence(tmp_path / "kafka").count(str(tmp_path)) == 1
    assert "topics.json: Permission denied" in sentence(tmp_path / "data", disk=RefusingDisk(errno.EACCES))
