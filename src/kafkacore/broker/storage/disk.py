"""The file system operations of the broker, behind one interface.

Constructors take a :class:`Disk`, so that tests can replace it by a disk that fails or loses power
(``kafkacore.testing.disk``).
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

#: Error numbers of an ``OSError`` when the volume is full or the user's quota is used up.
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)

#: Command of ``fcntl`` on macOS that also flushes the cache of the drive; ``None`` on other systems. There,
#: ``fsync`` leaves data in that cache, and ``fdatasync`` is missing.
FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
#: Error numbers of this command on file systems that do not support it, such as those of network shares.
NO_FULL_SYNC = (errno.ENOTSUP, errno.ENOTTY, errno.EINVAL)

#: Permissions of new files. Only the broker's user may read records.
FILE_MODE = 0o600
#: Permissions of new folders.
FOLDER_MODE = 0o700


class FolderAccess(NamedTuple):
    """Owner and permissions of a folder."""

    #: User id of the owner.
    owner: int
    #: Permission bits.
    mode: int


class DiskSpace(NamedTuple):
    """Size and free space of a volume."""

    total_bytes: int
    #: Free bytes available to users other than root.
    usable_bytes: int


def replace_file(path: Path, data: bytes, mode: int = FILE_MODE) -> None:
    """Replace a file atomically. This is safe in a folder that other users can write to, such as ``/tmp``.

    The temporary file is always newly created, so it cannot be a link that another user has placed there.

    Parameters
    ----------
    path:
        File to create or replace.
    data:
        New content.
    mode:
        Permissions of the file, before the umask.
    """
    half = path.with_name(path.name + ".tmp")
    half.unlink(missing_ok=True)
    with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb") as file:
        file.write(data)
    half.replace(path)


def _full_sync(fd: int, command: int) -> None:
    try:
        fcntl.fcntl(fd, command)
    except OSError as error:
        if error.errno not in NO_FULL_SYNC:
            raise
        os.fsync(fd)


def _open(path: Path, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
    except OSError as error:
        if error.errno == errno.ELOOP and path.is_symlink():
            error.strerror = "it is a symbolic link, which the broker does not follow inside its data folder"
        raise


class Disk:
    """The operating system's file system. The caller closes each descriptor with :meth:`close`.

    Symbolic links to files are never followed. Otherwise a user who can create links in the data folder could
    make the broker write to other files of the broker's user.
    """

    #: Whether descriptors are those of the operating system and can be used with ``sendfile``.
    has_descriptors = True

    # ---- Files ----------------------------------------------------------------------------------------

    def open(self, path: Path, *, create: bool = False) -> int:
        """Open a file for reading and writing, and return its descriptor.

        Parameters
        ----------
        path:
            Path of the file.
        create:
            Whether to create an empty file if it is missing.
        """
        return _open(path, os.O_RDWR | (os.O_CREAT if create else 0))

    def open_read_only(self, path: Path) -> int:
        """Open a file for reading, and return its descriptor."""
        return _open(path, os.O_RDONLY)

    def close(self, fd: int) -> None:
        """Close a descriptor."""
        os.close(fd)

    def pread(self, fd: int, size: int, position: int) -> bytes:
        """Read ``size`` bytes at ``position``, or fewer bytes if the file ends earlier."""
        data = os.pread(fd, size, position)
        if len(data) == size or not data:
            return data
        # A read returns fewer bytes only at the end of the file, or if size is above the limit of one system
        # call.
        parts = [data]
        missing = size - len(data)
        while missing and (data := os.pread(fd, missing, position + size - missing)):
            parts.append(data)
            missing -= len(data)
        return b"".join(parts)

    def pwritev(self, fd: int, buffers: Sequence[Buffer], position: int) -> None:
        """Write all ``buffers`` consecutively at ``position``. An ``OSError`` may leave a partial write."""
        pwritev_all(fd, buffers, position)

    def size(self, fd: int) -> int:
        """Return the size of an open file in bytes."""
        return os.fstat(fd).st_size

    def truncate(self, fd: int, size: int) -> None:
        """Set the size of an open file."""
        os.ftruncate(fd, size)

    def fdatasync(self, fd: int) -> None:
        """Sync the content and the size of a file to the medium."""
        if FULL_SYNC is None:
            os.fdatasync(fd)
        else:
            _full_sync(fd, FULL_SYNC)

    # ---- Names ----------------------------------------------------------------------------------------

    def rename(self, source: Path, target: Path) -> None:
        """Rename atomically, replacing ``target`` if it is a file.

        The rename is durable only after :meth:`fsync_dir`.
        """
        os.replace(source, target)

    def unlink(self, path: Path) -> None:
        """Remove a file or a symbolic link."""
        os.unlink(path)

    def mkdir(self, path: Path) -> None:
        """Create a folder. Its parent must exist, and the folder must not exist."""
        os.mkdir(path, FOLDER_MODE)

    def rmdir(self, path: Path) -> None:
        """Remove an empty folder."""
        os.rmdir(path)

    def listdir(self, path: Path) -> list[str]:
        """Return the sorted names in a folder."""
        return sorted(os.listdir(path))

    def file_size(self, path: Path) -> int | None:
        """Return the size of a file in bytes, or ``None`` if it is missing."""
        try:
            return os.stat(path, follow_symlinks=False).st_size
        except FileNotFoundError:
            return None

    def exists(self, path: Path) -> bool:
        """Whether a file or folder exists at ``path``."""
        return os.path.exists(path)

    def is_dir(self, path: Path) -> bool:
        """Whether ``path`` is a folder, and not a link to a folder. Deletion must not follow a link."""
        return os.path.isdir(path) and not os.path.islink(path)

    def folders(self, path: Path) -> list[str]:
        """Return the sorted names of the folders in a folder, without links to folders."""
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))

    def linked_folders(self, path: Path) -> list[str]:
        """Return the sorted names in a folder that are symbolic links to folders."""
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries if entry.is_symlink() and entry.is_dir())

    def access(self, path: Path) -> FolderAccess:
        """Return the owner and the permissions of a folder."""
        found = os.stat(path)
        return FolderAccess(found.st_uid, stat.S_IMODE(found.st_mode))

    def fsync_dir(self, path: Path) -> None:
        """Sync the names in a folder to the medium."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if FULL_SYNC is None:
                os.fsync(fd)
            else:
                _full_sync(fd, FULL_SYNC)
        finally:
            os.close(fd)

    def space(self, path: Path) -> DiskSpace:
        """Return size and free space of the volume that contains ``path``."""
        found = os.statvfs(path)
        return DiskSpace(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)

    def boot_id(self) -> str:
        """Return an id that changes with each boot of the machine, or an empty string if it is unknown."""
        try:
            with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
                return file.read().strip()
        except OSError:
            return ""

    def lock(self, path: Path) -> int | None:
        """Acquire an exclusive lock on a file, which the system releases when the process ends.

        Returns
        -------
        int, None
            Descriptor of the file, or ``None`` if another process holds the lock.
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
        """Read a whole file.

        Raises
        ------
        FileNotFoundError
            The file is missing.
        """
        fd = self.open_read_only(path)
        try:
            return self.pread(fd, self.size(fd), 0)
        finally:
            self.close(fd)

    def write_file(self, path: Path, data: bytes) -> None:
        """Replace a file atomically. The new content is durable on return.

        After a crash or an ``OSError`` the file has either its old content or ``data``.
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
        """Remove a folder and everything in it. Symbolic links are removed and never followed."""
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
