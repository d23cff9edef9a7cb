"""Find and read segment files.

Topic, partition and base offset are derived from a file's path. Local and mounted paths are read through the
operating system, and all other URLs through fsspec.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, TypedDict

from kafkacore.errors import KafkaConfigurationError
from kafkacore.spark.secrets import resolved
from kafkacore.structs import MAX_TOPIC_NAME_LENGTH, TOPIC_NAME_CHARACTERS

if TYPE_CHECKING:
    from kafkacore.record.segment_file import ReadAt


class _FileInfo(TypedDict):
    type: str
    size: int


class FileSystem(Protocol):
    """The methods of fsspec's file systems that are used here. fsspec has no type annotations."""

    def unstrip_protocol(self, name: str) -> str: ...
    def glob(self, path: str) -> list[str]: ...
    def exists(self, path: str) -> bool: ...
    def info(self, path: str) -> _FileInfo: ...
    def find(self, path: str, *, detail: Literal[True]) -> dict[str, _FileInfo]: ...
    def cat_file(self, path: str, start: int | None = None, end: int | None = None) -> bytes: ...
    def size(self, path: str) -> int: ...


#: Bytes per read. Remote reads are larger, because a request to an object store takes tens of milliseconds.
REMOTE_CHUNK_BYTES = 8 << 20
LOCAL_CHUNK_BYTES = 1 << 20

# File name of a segment. In tiered storage, an id follows the offset in the name.
_SEGMENT = re.compile(r"(\d{20})(-[\w-]+)?\.log")
# In tiered storage, the topic's id (16 bytes in base64) follows the name of a topic or a partition.
_ID = r"(?:-[\w-]{22})?"
_TOPIC = f"[{TOPIC_NAME_CHARACTERS}]{{1,{MAX_TOPIC_NAME_LENGTH}}}"
_PARTITION_FOLDER = re.compile(rf"({_TOPIC}?)-(\d{{1,10}}){_ID}")
_TOPIC_FOLDER = re.compile(rf"({_TOPIC})-[\w-]{{22}}")
# Names of directories that a broker is about to delete or to move.
_NOT_THE_LOG = re.compile(r".*\.[0-9a-f]{32}-(delete|future|stray)")
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")
_GLOB = re.compile(r"[*?\[]")


def without_password(path: str) -> str:
    """Return ``path`` without the user and the password."""
    return re.sub(r"//[^/]*@", "//", path)


@dataclass(frozen=True)
class LogFile:
    """One segment file.

    Parameters
    ----------
    path:
        Path or URL.
    size:
        Size in bytes.
    topic, partition:
        Topic and partition from the name of the directory; ``None`` if the name does not contain them.
    base_offset:
        Base offset from the name of the file; ``None`` if the name does not contain an offset.
    is_last:
        Whether the file is the last segment of its partition. Only the last segment may end within a batch.
    """

    path: str
    size: int
    topic: str | None = None
    partition: int | None = None
    base_offset: int | None = None
    is_last: bool = True

    @property
    def shown(self) -> str:
        """Path for messages, without the password that a URL may contain."""
        return without_password(self.path)

    @property
    def log(self) -> tuple[str, int, str]:
        """Key of the file's log: the partition, or the directory if the partition is unknown."""
        if self.topic is None or self.partition is None:
            return "", -1, str(PurePosixPath(self.path).parent)
        return self.topic, self.partition, ""

    @property
    def is_remote(self) -> bool:
        return is_remote(self.path)

    @property
    def chunk_bytes(self) -> int:
        """Bytes to read at once."""
        return REMOTE_CHUNK_BYTES if self.is_remote else LOCAL_CHUNK_BYTES


def is_remote(path: str) -> bool:
    """Return whether ``path`` is a URL with a scheme that is not ``file``."""
    return _URL.match(path) is not None and not path.startswith("file:")


#: Value of an fsspec option: text, or parsed JSON.
StorageValue: TypeAlias = "str | bool | int | float | list[StorageValue] | dict[str, StorageValue] | None"


@dataclass(frozen=True)
class Storage:
    """Access to local and remote files; picklable. ``options`` are fsspec's and may contain secrets."""

    options: Mapping[str, StorageValue]

    def __repr__(self) -> str:
        return f"Storage({', '.join(self.options)})"

    # ---- Finding -----------------------------------------------------------------------------------------
    def find(self, paths: Iterable[str]) -> list[tuple[str, int]]:
        """Return the paths and sizes of the segment files in ``paths``.

        A path is a file, a directory or a glob. A file may have any name. A directory is searched recursively
        for files with the name of a segment. As in Spark's own sources, names in directories that start with
        ``_`` or ``.`` are ignored. Kafka's internal topics are therefore ignored too.

        Raises
        ------
        KafkaConfigurationError
            A path does not exist or contains no segment.
        """
        found: dict[str, int] = {}
        for path in paths:
            files = list(self._remote_files(path) if is_remote(path) else _local_files(path))
            if not files:
                raise KafkaConfigurationError(
                    f"no segment file found at {without_password(path)}: set the path to a .log file, or "
                    "to a directory that contains files like <topic>-<partition>/<20 digits>.log"
                )
            found.update(files)
        return list(found.items())

    def _remote_files(self, path: str) -> Iterator[tuple[str, int]]:
        fs, root = self._filesystem(path)
        # fsspec returns names without the protocol, user and host, which are needed to open a file.
        whole = path.rstrip("/")
        before = whole.removesuffix(root) if whole.endswith(root) else fs.unstrip_protocol("")
        for one in _of_logs(fs.glob(root)) if _GLOB.search(root) else [root]:
            if not fs.exists(one):
                continue
            info = fs.info(one)
            if info["type"] == "file":
                yield before + one, int(info["size"])
                continue
            for name, below in sorted(fs.find(one, detail=True).items()):
                if _is_segment(str(PurePosixPath("/", name).relative_to(PurePosixPath("/", one)))):
                    yield before + name, int(below["size"])

    def _filesystem(self, path: str) -> tuple[FileSystem, str]:
        try:
            from fsspec.core import url_to_fs  # type: ignore[import-untyped]  # fsspec has no types
        except ImportError:
            raise KafkaConfigurationError(
                f"{without_password(path)} needs fsspec: pip install 'kafkacore[fsspec]'"
            ) from None
        storage = {name: _resolved(each, f"storage.{name}") for name, each in self.options.items()}
        try:
            fs, root = url_to_fs(path, **storage)
        except (ImportError, ValueError) as error:
            # An ImportError names the package to install. A ValueError may contain option values.
            reason = str(error) if isinstance(error, ImportError) else "fsspec does not support this URL"
            raise KafkaConfigurationError(f"{without_password(path)}: {reason}") from None
        return fs, root

    # ---- Reading -----------------------------------------------------------------------------------------
    @contextmanager
    def open(self, path: str, in_order: bool = True) -> Iterator[ReadAt]:
        """Open a file and return a function that reads from a position.

        Parameters
        ----------
        path:
            Path or URL.
        in_order:
            Whether the file is read sequentially. A remote file is then read in larger blocks.
        """
        if is_remote(path):
            fs, name = self._filesystem(path)

            def read(position: int, size: int) -> bytes:
                return bytes(fs.cat_file(name, start=position, end=position + size))

            yield _Blocks(read).read if in_order else read
            return
        fd = os.open(_local_path(path), os.O_RDONLY | os.O_CLOEXEC)
        try:
            yield lambda position, size: os.pread(fd, size, position)
        finally:
            os.close(fd)

    def content(self, path: str, max_bytes: int) -> bytes | None:
        """Return a whole file; ``None`` if it does not exist or is larger than ``max_bytes``."""
        try:
            if is_remote(path):
                fs, name = self._filesystem(path)
                return None if int(fs.size(name)) > max_bytes else bytes(fs.cat_file(name))
            if os.path.getsize(_local_path(path)) > max_bytes:
                return None
            with open(_local_path(path), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None


class _Blocks:
    """Buffer that serves small sequential reads from large blocks."""

    def __init__(self, read: Callable[[int, int], bytes]) -> None:
        self._read = read
        self._block = b""
        self._start = 0

    def read(self, position: int, size: int) -> memoryview:
        at = position - self._start
        if at < 0 or size > len(self._block) - at:
            self._block = self._read(position, max(size, REMOTE_CHUNK_BYTES))
            self._start, at = position, 0
        return memoryview(self._block)[at : at + size]


def _resolved(value: StorageValue, option: str) -> StorageValue:
    """Return ``value`` with references to secrets resolved, including those inside parsed JSON."""
    if isinstance(value, str):
        return resolved(value, option)
    if isinstance(value, Mapping):
        return {name: _resolved(each, f"{option}.{name}") for name, each in value.items()}
    return [_resolved(each, option) for each in value] if isinstance(value, list) else value


def _local_path(path: str) -> str:
    if not path.startswith("file:"):
        return path
    return re.sub(r"^/{2,}", "/", path.removeprefix("file:"))


def _local_files(path: str) -> Iterator[tuple[str, int]]:
    path = _local_path(path)
    # If a file with this exact name exists, the path is not a glob, even if it contains brackets.
    is_glob = _GLOB.search(path) is not None and not os.path.exists(path)
    named = _of_logs(glob.glob(path, recursive=True)) if is_glob else [path]
    for one in named:
        if os.path.isfile(one):
            yield os.path.abspath(one), os.path.getsize(one)
            continue
        entered = set()
        for folder, folders, names in os.walk(one, followlinks=True):
            # A symbolic link may lead back to a directory that was already visited.
            real = os.path.realpath(folder)
            if real in entered:
                folders.clear()
                continue
            entered.add(real)
            folders.sort()
            for name in sorted(names):
                whole = os.path.join(folder, name)
                if _is_segment(os.path.relpath(whole, one)):
                    yield os.path.abspath(whole), os.path.getsize(whole)


def _of_logs(matches: Iterable[str]) -> list[str]:
    """Return the sorted matches of a glob, without directories that are about to be deleted or moved."""
    return sorted(one for one in matches if not any(map(_NOT_THE_LOG.fullmatch, PurePosixPath(one).parts)))


def _is_segment(relative: str) -> bool:
    *folders, name = PurePosixPath(relative).parts
    if _SEGMENT.fullmatch(name) is None:
        return False
    return not any(folder[0] in "_." or _NOT_THE_LOG.fullmatch(folder) for folder in folders)


# ---- Names -------------------------------------------------------------------------------------------------
def place_of(path: str) -> tuple[str | None, int | None, int | None]:
    """Return the topic, partition and base offset in a segment's path; ``None`` for a missing part.

    A broker stores a segment as ``<topic>-<partition>/<offset>.log``. In tiered storage, the folder is
    ``<topic>-<partition>-<topic id>`` or ``<topic>-<topic id>/<partition>``.
    """
    parts = PurePosixPath(path).parts
    segment = _SEGMENT.fullmatch(parts[-1])
    base_offset = int(segment[1]) if segment else None
    if (
        len(parts) > 2
        and re.fullmatch(r"\d{1,10}", parts[-2])
        and (topic := _TOPIC_FOLDER.fullmatch(parts[-3]))
    ):
        return topic[1], int(parts[-2]), base_offset
    if len(parts) > 1 and (folder := _PARTITION_FOLDER.fullmatch(parts[-2])):
        return folder[1], int(folder[2]), base_offset
    return None, None, base_offset


def log_files(
    found: Iterable[tuple[str, int]], topic: str | None = None, partition: int | None = None
) -> list[LogFile]:
    """Return the files, ordered by log and base offset.

    Parameters
    ----------
    found:
        Paths and sizes.
    topic, partition:
        Topic and partition of all files. They override the names of the directories.
    """
    files = []
    for path, size in found:
        named_topic, named_partition, base_offset = place_of(path)
        files.append(
            LogFile(
                path,
                size,
                named_topic if topic is None else topic,
                named_partition if partition is None else partition,
                base_offset,
            )
        )
    files.sort(key=_in_order)
    followed = {file.path for file, then in pairwise(files) if _is_followed(file, then)}
    return [
        LogFile(f.path, f.size, f.topic, f.partition, f.base_offset, is_last=f.path not in followed)
        for f in files
    ]


def _in_order(file: LogFile) -> tuple[tuple[str, int, str], int, str]:
    return file.log, file.base_offset or 0, file.path


def _is_followed(file: LogFile, then: LogFile) -> bool:
    if file.base_offset is None or then.base_offset is None:
        return False
    return file.log == then.log and file.base_offset < then.base_offset
