"""The message of a broker that cannot start: one sentence with the reason and the remedy."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.listeners.startup_errors import BrokerStartError, check_folder
from kafkacore.broker.process.server import KafkaBroker
from kafkacore.broker.storage.disk import Disk, FolderAccess, replace_file


class RefusingDisk(Disk):
    """A disk that refuses to create or write files."""

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
    assert f"cannot listen on 127.0.0.1:{port}: another program is using this port" in said
    assert "--listen 127.0.0.1:0" in said


def test_address_that_this_machine_does_not_have_is_named(tmp_path: Path) -> None:
    assert "this machine has no address 192.0.2.7" in sentence(tmp_path, host="192.0.2.7", allow_remote=True)


def test_host_that_is_not_known_is_named(tmp_path: Path) -> None:
    said = sentence(tmp_path, host="no-such-host.invalid", allow_remote=True)
    assert "cannot resolve the host no-such-host.invalid" in said


def test_file_in_the_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "kafka").write_text("")
    assert "it is a file; choose a folder" in sentence(tmp_path / "kafka")
    assert "it is a file; choose a folder" in sentence(tmp_path / "kafka" / "data")


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the disk is full. Free some space and start again"),
        (errno.EDQUOT, "the disk is full"),
        (errno.EACCES, "let the broker's user write there"),
        (errno.EROFS, "Read-only file system: choose another folder (--data-dir)"),
        (errno.ENOENT, "No such file or directory: choose another folder (--data-dir)"),
        (errno.EMFILE, "ulimit -n"),
        (errno.EIO, os.strerror(errno.EIO)),
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


# ---- Access to the data folder ---------------------------------------------------------------------------


class OwnedDisk(Disk):
    """A disk that reports this owner and mode for the data folder."""

    def __init__(self, owner: int, mode: int) -> None:
        self.found = FolderAccess(owner, mode)

    def access(self, path: Path) -> FolderAccess:
        return self.found


OURS, THEIRS, ROOT = 54_321, 54_322, 0


@pytest.mark.parametrize(
    ("user", "owner", "mode", "refusal"),
    [
        (OURS, OURS, 0o700, None),
        (OURS, OURS, 0o750, None),
        (OURS, OURS, 0o755, None),
        (OURS, OURS, 0o770, None),
        (OURS, OURS, 0o777, "run chmod 750 /d, or choose a new folder inside it (--data-dir /d/data)"),
        (OURS, OURS, 0o1777, "(mode 1777)"),
        # A Kubernetes volume with fsGroup.
        (OURS, ROOT, 0o2775, None),
        (OURS, ROOT, 0o777, "every user can write to the folder /d (mode 0777)"),
        (OURS, THEIRS, 0o700, "belongs to user 54322, but the broker runs as user 54321"),
        (OURS, THEIRS, 0o2770, "chown -R 54321 /d"),
        # A container that runs as root, with a volume that another user owns.
        (ROOT, THEIRS, 0o755, None),
        (ROOT, THEIRS, 0o757, "every user can write"),
    ],
)
def test_folder_that_others_could_change_is_refused(
    monkeypatch: pytest.MonkeyPatch, user: int, owner: int, mode: int, refusal: str | None
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    if refusal is None:
        check_folder(Path("/d"), OwnedDisk(owner, mode))
        return
    with pytest.raises(BrokerStartError) as caught:
        check_folder(Path("/d"), OwnedDisk(owner, mode))
    assert refusal in str(caught.value)


@pytest.mark.parametrize(
    ("mode", "warning"),
    [
        (0o700, ""),
        (0o750, ""),
        (0o755, "every user can read the folder /d (mode 0755); run chmod 750 /d to prevent this"),
        (0o2770, "its group can write to the folder /d (mode 2770); run chmod 750 /d to prevent this"),
    ],
)
def test_folder_that_others_can_read_is_warned_about(
    caplog: pytest.LogCaptureFixture, mode: int, warning: str
) -> None:
    check_folder(Path("/d"), OwnedDisk(os.geteuid(), mode))
    assert [record.getMessage() for record in caplog.records] == ([warning] if warning else [])


def test_broker_checks_its_folder_before_it_opens_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(0o777)
    assert "every user can write" in sentence(folder)
    assert list(folder.iterdir()) == []


def test_data_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("real")
    with KafkaBroker(BrokerConfig(data_dir=tmp_path / "link", port=0)) as broker:
        assert broker.services is not None
        # The broker has resolved the link at its start. Changing it now has no effect.
        (tmp_path / "link").unlink()
        (tmp_path / "link").symlink_to("elsewhere")
    assert (tmp_path / "real" / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize(
    "name", ["topics.json", "topics.json.tmp", ".lock", "meta.properties", "recovery-point-offset-checkpoint"]
)
def test_file_of_the_folder_that_is_a_link_is_refused(tmp_path: Path, name: str) -> None:
    folder, target = tmp_path / "data", tmp_path / "target"
    folder.mkdir(mode=0o700)
    target.write_text("foreign")
    (folder / name).symlink_to(target)
    said = sentence(folder)
    assert f"{folder / name}: it is a symbolic link, which the broker does not follow" in said
    assert target.read_text() == "foreign"


def test_file_is_not_replaced_through_a_link_in_a_folder_of_everybody(tmp_path: Path) -> None:
    """Replace the links themselves, as for a ready file in /tmp whose name another user can guess."""
    target = tmp_path / "target"
    target.write_text("foreign")
    (tmp_path / "ready.tmp").symlink_to(target)
    (tmp_path / "ready").symlink_to(target)
    replace_file(tmp_path / "ready", b"mine", 0o644)
    assert target.read_text() == "foreign"
    assert not (tmp_path / "ready").is_symlink()
    assert (tmp_path / "ready").read_bytes() == b"mine"
    assert not (tmp_path / "ready.tmp").exists()
