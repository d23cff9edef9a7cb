"""A simulated disk in memory that injects faults and, on a power loss, forgets data that was not synced.

It guarantees what POSIX guarantees: bytes are durable after ``fdatasync`` of the file, and names after
``fsync_dir`` of the folder. A failing ``fdatasync`` behaves as on Linux: the bytes stay readable until the
power loss, and a later ``fdatasync`` does not write them.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from kafkacore.broker.storage.disk import FOLDER_MODE, Buffer, Disk, DiskSpace, FolderAccess
from kafkacore.clock import Clock

#: A power loss may keep a part of a write, in units of this many bytes.
SECTOR_SIZE = 512


class PowerLossError(BaseException):
    """The power failed at this call.

    No code can handle a power loss, so this class does not derive from ``Exception``.
    """


@dataclass(eq=False)
class _File:
    data: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    #: Changes since the last sync. A write is (position, bytes); a truncation is (size, None).
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)
    is_locked: bool = False

    def apply(self, data: bytearray, position: int, written: bytes | None) -> None:
        end = position + len(written or b"")
        if written is None:
            del data[position:]
        data.extend(bytes(max(end - len(data), 0)))
        if written is not None:
            data[position:end] = written

    def sync(self) -> None:
        data = bytearray(self.durable)
        for position, written in self.pending:
            self.apply(data, position, written)
        self.durable = bytes(data)
        self.pending = []

    def after_power_loss(self, clock: Clock) -> _File:
        """Return one of the contents that the file may have after a power loss."""
        kept = self._kept(clock)
        data = bytearray(self.durable)
        for position, written in kept:
            self.apply(data, position, written)
        return _File(data, bytes(data))

    def _kept(self, clock: Clock) -> list[tuple[int, bytes | None]]:
        how = clock.random.randrange(4)
        if how == 0:
            return []
        if how == 1:
            return self.pending
        sectors: list[tuple[int, bytes | None]] = []
        for position, written in self.pending:
            if written is None:
                sectors.append((position, None))
            else:
                sectors += _sectors(position, written)
        if how == 2:
            return sectors[: clock.random.randint(0, len(sectors))]
        return [sector for sector in sectors if clock.random.random() < 0.5]


def _sectors(position: int, written: bytes) -> list[tuple[int, bytes | None]]:
    sectors: list[tuple[int, bytes | None]] = []
    while written:
        size = SECTOR_SIZE - position % SECTOR_SIZE
        sectors.append((position, written[:size]))
        position, written = position + size, written[size:]
    return sectors


@dataclass(eq=False)
class _Folder:
    names: dict[str, _File | _Folder] = field(default_factory=dict)
    durable: dict[str, _File | _Folder] = field(default_factory=dict)
    #: Changes since the last sync. Each change maps names to their new entries and is applied as a whole.
    pending: list[dict[str, _File | _Folder | None]] = field(default_factory=list)

    def change(self, changes: dict[str, _File | _Folder | None]) -> None:
        self.pending.append(changes)
        _apply(self.names, changes)

    def after_power_loss(self, clock: Clock) -> _Folder:
        names = dict(self.durable)
        # A prefix of the changes survives, because a journal records the changes of a folder in order.
        for changes in self.pending[: clock.random.randint(0, len(self.pending))]:
            _apply(names, changes)
        survivors = {name: node.after_power_loss(clock) for name, node in names.items()}
        return _Folder(survivors, dict(survivors))

    def after_kill(self) -> _Folder:
        """Release the locks. No data is lost, and no data becomes durable."""
        for node in self.names.values():
            if isinstance(node, _Folder):
                node.after_kill()
            else:
                node.is_locked = False
        return self


def _apply(names: dict[str, _File | _Folder], changes: dict[str, _File | _Folder | None]) -> None:
    for name, node in changes.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


class SimulatedDisk(Disk):
    """A disk that starts empty. Only one thread may use it.

    Attributes
    ----------
    fault:
        A function that is called before each change and each sync, with the number of the call, the operation
        and the path. It returns the error to raise, or ``None``. A failing ``pwritev`` writes half of its
        bytes first.
    capacity:
        Capacity in bytes. A write that exceeds the capacity stores the bytes that fit, and fails with ENOSPC.
    """

    has_descriptors = False

    def __init__(self, root: _Folder | None = None, boots: int = 1) -> None:
        self._root = root or _Folder()
        self._boots = boots
        self._descriptors: dict[int, tuple[Path, _File]] = {}
        self._next_fd = count(3)
        self.call_count = 0
        self.fault: Callable[[int, str, Path], BaseException | None] = lambda call, verb, path: None
        self.capacity: int | None = None
        self._has_power = True

    # ---- Power loss and kill --------------------------------------------------------------------------

    def lose_power(self, clock: Clock) -> SimulatedDisk:
        """Simulate a power loss, and return a possible state of the disk, chosen by ``clock.random``."""
        self._has_power = False
        return SimulatedDisk(self._root.after_power_loss(clock), self._boots + 1)

    def copy(self) -> SimulatedDisk:
        """Return a disk with the same content, whether durable or not, and without open files."""
        return SimulatedDisk(deepcopy(self._root).after_kill(), self._boots)

    def kill_process(self) -> SimulatedDisk:
        """Simulate a kill of the process, and return the state of the disk."""
        self._has_power = False
        return SimulatedDisk(self._root.after_kill(), self._boots)

    def boot_id(self) -> str:
        return str(self._boots)

    @property
    def has_power(self) -> bool:
        return self._has_power

    @property
    def open_count(self) -> int:
        """Number of open descriptors."""
        return len(self._descriptors)

    def used_bytes(self) -> int:
        """Return the sum of the sizes of all files."""
        return _size_of(self._root)

    def _call(self, verb: str, path: Path) -> None:
        if not self._has_power:
            raise PowerLossError(verb)
        error = self.fault(self.call_count, verb, path)
        self.call_count += 1
        if isinstance(error, PowerLossError):
            self._has_power = False
        if error is not None:
            raise error

    # ---- Names ----------------------------------------------------------------------------------------

    def _node(self, path: Path) -> _File | _Folder:
        if not self._has_power:
            raise PowerLossError(str(path))
        node: _File | _Folder = self._root
        for part in path.parts[1:]:
            if not isinstance(node, _Folder) or part not in node.names:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
            node = node.names[part]
        return node

    def _folder(self, path: Path) -> _Folder:
        node = self._node(path)
        if not isinstance(node, _Folder):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
        return node

    def _file(self, path: Path) -> _File:
        node = self._node(path)
        if isinstance(node, _Folder):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        return node

    def rename(self, source: Path, target: Path) -> None:
        assert source.parent == target.parent, "a rename must stay in the same folder"
        self._call("rename", source)
        self._folder(source.parent).change({source.name: None, target.name: self._node(source)})

    def unlink(self, path: Path) -> None:
        self._call("unlink", path)
        self._file(path)
        self._folder(path.parent).change({path.name: None})

    def mkdir(self, path: Path) -> None:
        self._call("mkdir", path)
        if self.exists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        self._folder(path.parent).change({path.name: _Folder()})

    def rmdir(self, path: Path) -> None:
        self._call("rmdir", path)
        if self._folder(path).names:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), str(path))
        self._folder(path.parent).change({path.name: None})

    def listdir(self, path: Path) -> list[str]:
        return sorted(self._folder(path).names)

    def folders(self, path: Path) -> list[str]:
        return [name for name in self.listdir(path) if self.is_dir(path / name)]

    def exists(self, path: Path) -> bool:
        try:
            self._node(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def file_size(self, path: Path) -> int | None:
        return len(self._file(path).data) if self.exists(path) else None

    def is_dir(self, path: Path) -> bool:
        return self.exists(path) and isinstance(self._node(path), _Folder)

    def linked_folders(self, path: Path) -> list[str]:
        return []

    def access(self, path: Path) -> FolderAccess:
        return FolderAccess(os.geteuid(), FOLDER_MODE)

    def fsync_dir(self, path: Path) -> None:
        self._call("fsync_dir", path)
        folder = self._folder(path)
        folder.durable = dict(folder.names)
        folder.pending = []

    # ---- Files ----------------------------------------------------------------------------------------

    def open(self, path: Path, *, create: bool = False) -> int:
        if create and not self.exists(path):
            self._call("create", path)
            self._folder(path.parent).change({path.name: _File()})
        fd = next(self._next_fd)
        self._descriptors[fd] = (path, self._file(path))
        return fd

    def open_read_only(self, path: Path) -> int:
        return self.open(path)

    def close(self, fd: int) -> None:
        _, file = self._descriptors.pop(fd)
        file.is_locked = False

    def pread(self, fd: int, size: int, position: int) -> bytes:
        path, file = self._descriptors[fd]
        # A read may fail, too, but it is not counted because it changes nothing.
        error = self.fault(-1, "pread", path)
        if error is not None:
            raise error
        return bytes(file.data[position : position + size])

    def pwritev(self, fd: int, buffers: Sequence[Buffer], position: int) -> None:
        path, file = self._descriptors[fd]
        data = b"".join(buffers)
        try:
            self._call("pwritev", path)
        except OSError:
            self._write(file, position, data[: len(data) // 2])
            raise
        growth = max(position + len(data) - len(file.data), 0)
        if self.capacity is not None and growth and self.used_bytes() + growth > self.capacity:
            fitting = max(self.capacity - self.used_bytes(), 0)
            self._write(file, position, data[: len(data) - growth + fitting])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        self._write(file, position, data)

    def _write(self, file: _File, position: int, data: bytes) -> None:
        file.pending.append((position, data))
        file.apply(file.data, position, data)

    def size(self, fd: int) -> int:
        return len(self._descriptors[fd][1].data)

    def truncate(self, fd: int, size: int) -> None:
        path, file = self._descriptors[fd]
        if size == len(file.data):
            return
        self._call("truncate", path)
        file.pending.append((size, None))
        file.apply(file.data, size, None)

    def fdatasync(self, fd: int) -> None:
        path, file = self._descriptors[fd]
        try:
            self._call("fdatasync", path)
        except OSError:
            file.pending = []
            raise
        file.sync()

    def space(self, path: Path) -> DiskSpace:
        used = self.used_bytes()
        capacity = 2**62 if self.capacity is None else self.capacity
        return DiskSpace(capacity, max(capacity - used, 0))

    def lock(self, path: Path) -> int | None:
        fd = self.open(path, create=True)
        file = self._descriptors[fd][1]
        if file.is_locked:
            self._descriptors.pop(fd)
            return None
        file.is_locked = True
        return fd


def _size_of(node: _File | _Folder) -> int:
    if isinstance(node, _File):
        return len(node.data)
    return sum(_size_of(child) for child in node.names.values())
