"""Why a broker cannot start, in a sentence that says what to change. An ``OSError`` in, text out."""

from __future__ import annotations

import errno
import logging
import os
import pwd
import stat
from pathlib import Path

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.storage.disk import DISK_FULL, Disk
from kafkacore.errors import KafkaError
from kafkacore.structs import printable

logger = logging.getLogger(__name__)

_FORBIDDEN = (errno.EACCES, errno.EPERM)
_NO_PLACE = (errno.EROFS, errno.ENOENT)
#: Below this, a port is the system's.
_FIRST_FREE_PORT = 1024


class BrokerStartError(KafkaError):
    """The broker cannot start; the message says why, and what to do about it."""


def cannot_listen(what: str, host: str, port: int, flag: str, error: OSError) -> BrokerStartError:
    """``what`` (the broker, the status page) cannot listen there; ``flag`` gives it another place."""
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    # The numbers of the resolver's own failures are below 0.
    if error.errno is not None and error.errno < 0:
        why = f"the name {host} is not known here; write an address, as {flag.format('127.0.0.1')}"
    elif error.errno == errno.EADDRINUSE:
        why = (
            f"another program listens there; stop it, or choose another port: {flag.format(host)} "
            "takes a free one"
        )
    elif error.errno == errno.EADDRNOTAVAIL:
        why = f"this machine has no address {host}; write one that it has, as {flag.format('127.0.0.1')}"
    elif error.errno in _FORBIDDEN and 0 < port < _FIRST_FREE_PORT:
        why = f"ports below {_FIRST_FREE_PORT} are the system's; choose a higher one"
    else:
        why = os.strerror(error.errno) if error.errno else str(error)
    return BrokerStartError(f"{what} cannot listen on {place}: {why}")


def check_folder(path: Path, disk: Disk) -> None:
    """Refuse a data folder that another user could change, and log a warning about one that others can read.

    A folder of root is trusted: a container's volume belongs to root and is open to the broker's group. Root
    itself may use any user's folder.

    Raises
    ------
    BrokerStartError
        Another user owns the folder, or every user may write to it; the message says what to do.
    """
    owner, mode = disk.access(path)
    user = os.geteuid()
    shown = printable(str(path))
    if owner not in (user, 0) and user != 0:
        raise BrokerStartError(
            f"the folder {shown} belongs to {_user_name(owner)}, and the broker runs as {_user_name(user)}: "
            f"run the broker as {_user_name(owner)}, or give it the folder (chown -R {user} {shown})"
        )
    if mode & stat.S_IWOTH:
        raise BrokerStartError(
            f"every user of this machine may write to the folder {shown} (mode {mode:04o}): chmod 750 "
            f"{shown}, or name a folder inside it (--data-dir {shown}/data), which the broker makes for its "
            "own user"
        )
    if mode & stat.S_IROTH or mode & stat.S_IWGRP:
        whose = "every user of this machine may read" if mode & stat.S_IROTH else "its group may write to"
        logger.warning("%s the folder %s (mode %04o); chmod 750 %s prevents that", whose, shown, mode, shown)


def _user_name(user: int) -> str:
    try:
        return f"user {pwd.getpwuid(user).pw_name}"
    except KeyError:
        return f"user {user}"


def cannot_use_folder(config: BrokerConfig, error: OSError) -> BrokerStartError:
    """The data folder, or a file in it, refuses."""
    at = "" if error.filename in (None, str(config.data_dir)) else f"{error.filename}: "
    what = error.strerror or str(error)
    if error.errno in DISK_FULL:
        why = f"{what}: the disk is full; make room on it and start again, nothing has been lost"
    elif error.errno in _FORBIDDEN:
        why = f"{what}: let the broker's user write there (chown, chmod), or name another folder (--data-dir)"
    elif error.errno in _NO_PLACE:
        why = f"{what}: name another folder (--data-dir)"
    elif error.errno in (errno.ENOTDIR, errno.EEXIST):
        why = "it is a file, and a folder is needed; name another one (--data-dir)"
    elif error.errno in (errno.EMFILE, errno.ENFILE):
        why = f"{what}: more files than a process may have open; raise the limit (ulimit -n) and start again"
    else:
        why = what
    return BrokerStartError(f"the folder {config.data_dir} cannot be used: {at}{why}")
