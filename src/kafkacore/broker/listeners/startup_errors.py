"""Errors that prevent the broker from starting, with messages that say what to change."""

from __future__ import annotations

import errno
import os
import pwd
import stat
from pathlib import Path

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.storage.disk import DISK_FULL, Disk
from kafkacore.errors import KafkaError
from kafkacore.logs import logger_of
from kafkacore.structs import printable

logger = logger_of(__name__)

_FORBIDDEN = (errno.EACCES, errno.EPERM)
_NO_PLACE = (errno.EROFS, errno.ENOENT)
#: Ports below this number are reserved for the system.
_FIRST_FREE_PORT = 1024


class BrokerStartError(KafkaError):
    """The broker cannot start; the message gives the reason and the remedy."""


def cannot_listen(what: str, host: str, port: int, flag: str, error: OSError) -> BrokerStartError:
    """Return the error that ``what`` (the broker or the status page) cannot listen on an address.

    ``flag`` is a format string for the command-line option that sets the address.
    """
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    # Errors of name resolution have negative numbers.
    if error.errno is not None and error.errno < 0:
        why = f"cannot resolve the host {host}; use an address, for example {flag.format('127.0.0.1')}"
    elif error.errno == errno.EADDRINUSE:
        why = (
            f"another program is using this port. Stop it, or choose another port: {flag.format(host)} "
            "uses a free port"
        )
    elif error.errno == errno.EADDRNOTAVAIL:
        why = f"this machine has no address {host}; use another address, such as {flag.format('127.0.0.1')}"
    elif error.errno in _FORBIDDEN and 0 < port < _FIRST_FREE_PORT:
        why = f"ports below {_FIRST_FREE_PORT} are reserved for the system; choose a higher port"
    else:
        why = os.strerror(error.errno) if error.errno else str(error)
    return BrokerStartError(f"{what} cannot listen on {place}: {why}")


def check_folder(path: Path, disk: Disk) -> None:
    """Refuse a data folder that other users could change. Log a warning if other users can read the folder.

    A folder of root is accepted, because a container's volume often belongs to root and is writable by the
    broker's group. Root itself may use any user's folder.

    Raises
    ------
    BrokerStartError
        Another user owns the folder, or every user may write to it. The message says what to do.
    """
    owner, mode = disk.access(path)
    user = os.geteuid()
    shown = printable(str(path))
    if owner not in (user, 0) and user != 0:
        raise BrokerStartError(
            f"the folder {shown} belongs to {_user_name(owner)}, but the broker runs as {_user_name(user)}: "
            f"run the broker as {_user_name(owner)}, or change the owner (chown -R {user} {shown})"
        )
    if mode & stat.S_IWOTH:
        raise BrokerStartError(
            f"every user can write to the folder {shown} (mode {mode:04o}): run chmod 750 {shown}, or choose "
            f"a new folder inside it (--data-dir {shown}/data), which the broker creates with mode 0700"
        )
    if mode & stat.S_IROTH or mode & stat.S_IWGRP:
        whose = "every user can read" if mode & stat.S_IROTH else "its group can write to"
        logger.warning(
            "%s the folder %s (mode %04o); run chmod 750 %s to prevent this", whose, shown, mode, shown
        )


def _user_name(user: int) -> str:
    try:
        return f"user {pwd.getpwuid(user).pw_name}"
    except KeyError:
        return f"user {user}"


def cannot_use_folder(config: BrokerConfig, error: OSError) -> BrokerStartError:
    """Return the error that the data folder, or a file in it, cannot be used."""
    at = "" if error.filename in (None, str(config.data_dir)) else f"{error.filename}: "
    what = error.strerror or str(error)
    if error.errno in DISK_FULL:
        why = f"{what}: the disk is full. Free some space and start again; no data was lost"
    elif error.errno in _FORBIDDEN:
        why = (
            f"{what}: let the broker's user write there (chown, chmod), or choose another folder (--data-dir)"
        )
    elif error.errno in _NO_PLACE:
        why = f"{what}: choose another folder (--data-dir)"
    elif error.errno in (errno.ENOTDIR, errno.EEXIST):
        why = "it is a file; choose a folder (--data-dir)"
    elif error.errno in (errno.EMFILE, errno.ENFILE):
        why = f"{what}: too many open files; raise the limit (ulimit -n) and start again"
    else:
        why = what
    return BrokerStartError(f"the folder {config.data_dir} cannot be used: {at}{why}")
