"""The storage seam: every touch of the file system by the broker's log, in a dozen verbs.

Paths, file descriptors and bytes in; bytes and ``OSError`` out. Handed in by constructor, so that tests
put a disk in its place that fails at call k or loses its power (``kafkacore.testing.disk``). Does not
know: logs, formats.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from kafkacore.broker.storage._disk_write import pwritev_all

Buffer = bytes | bytearray | memoryview

#: What an ``OSError`` says when there is no room, on the volume or for the user.
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)

#: Nobody but the broker's own user reads the records of its clients.
FILE_MODE = 0o600
FOLDER_MODE = 0o700


class FolderAccess(NamedTuple):
    """The user id that owns a folder, and the folder's permission bits."""

    owner: int
    mode: int


class DiskSpace(NamedTuple):
    """Of a volume: what fits on it, and what a user other than root may still add."""

    total_bytes: int
    usable_bytes: int


def replace_file(path: Path, data: bytes, mode: int = FILE_MODE) -> None:
    """Write a file as a whole or not at all, where the folder may be writable for others, such as ``/tmp``.

    The temporary file is always new, so that it cannot be a link that another user has made.

    Parameters
    ----------
    mode:
        Permissions of the file, before the umask.
    """
    half = path.with_name(path.name + ".tmp")
    half.unlink(missing_ok=True)
    with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb") as file:
        file.write(data)
    half.replace(path)


def _open(path: Path, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
    except OSError as error:
        if error.errno == errno.ELOOP and path.is_symlink():
            error.strerror = "it is a symbolic link, which the broker does not follow inside its data folder"
        raise


class Disk:
    """The operating system's file system. The code that opens a descriptor closes it with :meth:`close`.

    Files are never opened through a symbolic link: a user who could put one into the data folder would have
    the broker write to any file that its own user may write to.
    """

    #: Whether descriptors are the system's, so that others may send from them.
    has_descriptors = True

    # ---- Files ----------------------------------------------------------------------------------------

    def open(self, path: Path, *, create: bool = False) -> int:
        """A descriptor for reading and writing; ``create`` makes the file, empty, if it is missing."""
        return _open(path, os.O_RDWR | (os.O_CREAT if create else 0))

    def open_read_only(self, path: Path) -> int:
        """A descriptor for reading only."""
        return _open(path, os.O_RDONLY)

    def close(self, fd: int) -> None:
        os.close(fd)

    def pread(self, fd: int, size: int, position: int) -> bytes:
        """The bytes from ``position`` on, ``size`` of them or as many as there are before the end of the
        file.
        """
        data = os.pread(fd, size, position)
        if len(data) == size or not data:
            return data
        # Regular files give short reads only at their end, or for sizes beyond what one call can transfer.
        parts = [data]
        missing = size - len(data)
        while missing and (data := os.pread(fd, missing, position + size - missing)):
            parts.append(data)
            missing -= len(data)
        return b"".join(parts)

    def pwritev(self, fd: int, buffers: Sequence[Buffer], position: int) -> None:
        """Write all of ``buffers`` one after the other; an ``OSError`` may leave a part of them written."""
        pwritev_all(fd, buffers, position)

    def size(self, fd: int) -> int:
        return os.fstat(fd).st_size

    def truncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def fdatasync(self, fd: int) -> None:
        """Return when the file's bytes and its size are on the medium."""
        os.fdatasync(fd)

    # ---- Names ----------------------------------------------------------------------------------------

    def rename(self, source: Path, target: Path) -> None:
        """Atomic; replaces ``target`` if it is a file. Durable only after :meth:`fsync_dir`."""
        os.replace(source, target)

    def unlink(self, path: Path) -> None:
        os.unlink(path)

    def mkdir(self, path: Path) -> None:
        """Make one folder; its parents must exist, it may not."""
        os.mkdir(path, FOLDER_MODE)

    def rmdir(self, path: Path) -> None:
        os.rmdir(path)

    def listdir(self, path: Path) -> list[str]:
        """Names in a folder, sorted."""
        return sorted(os.listdir(path))

    def file_size(self, path: Path) -> int | None:
        """Size of a file, ``None`` if it is missing."""
        try:
            return os.stat(path, follow_symlinks=False).st_size
        except FileNotFoundError:
            return None

    def exists(self, path: Path) -> bool:
        return os.path.exists(path)

    def is_dir(self, path: Path) -> bool:
        """Whether ``path`` is a folder of its own; a link to one is not, because deletion must stay
        inside.
        """
        return os.path.isdir(path) and not os.path.islink(path)

    def folders(self, path: Path) -> list[str]:
        """Names of the folders in a folder, sorted; links to folders are none."""
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))

    def linked_folders(self, path: Path) -> list[str]:
        """Return the sorted names in a folder that are symbolic links to folders."""
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries if entry.is_symlink() and entry.is_dir())

    def access(self, path: Path) -> FolderAccess:
        """Return who owns a folder and who may use it."""
        found = os.stat(path)
        return FolderAccess(found.st_uid, stat.S_IMODE(found.st_mode))

    def fsync_dir(self, path: Path) -> None:
        """Return when the names in the folder are on the medium."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def space(self, path: Path) -> DiskSpace:
        """Of the volume that ``path`` is on."""
        found = os.statvfs(path)
        return DiskSpace(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)

    def boot_id(self) -> str:
        """Another one after each start of the machine; empty if the system does not tell."""
        try:
            with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
                return file.read().strip()
        except OSError:
            return ""

    def lock(self, path: Path) -> int | None:
        """Take an exclusive lock that dies with the process: its descriptor, or ``None`` if somebody has
        it.
        """
        fd = self.open(path, create=True)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        except BaseException:
            os.close(fd)
            raise
        return fd

    # ---- Whole small files ----------------------------------------------------------------------------

    def read_file(self, path: Path) -> bytes:
        """A small file as a whole; ``FileNotFoundError`` if it is missing."""
        fd = self.open_read_only(path)
        try:
            return self.pread(fd, self.size(fd), 0)
        finally:
            self.close(fd)

    def write_file(self, path: Path, data: bytes) -> None:
        """Replace a small file: after a crash it has its old content or ``data``, which is durable on return.

        An ``OSError`` leaves the old content.
        """
        temporary = path.with_name(path.name + ".tmp")
        fd = self.open(temporary, create=True)
        try:
            self.truncate(fd, 0)
            self.pwritev(fd, [data], 0)
            self.fdatasync(fd)
        finally:
            self.close(fd)
        self.rename(temporary, path)
        self.fsync_dir(path.parent)

    def remove_tree(self, path: Path) -> None:
        """Remove a folder of files and folders; links, itself included, are removed, never followed."""
        if not self.is_dir(path):
            self.unlink(path)
            return
        for name in self.listdir(path):
            child = path / name
            if self.is_dir(child):
                self.remove_tree(child)
            else:
                self.unlink(child)
        self.rmdir(path)
