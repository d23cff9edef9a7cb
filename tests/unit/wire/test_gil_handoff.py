"""The count of threads that wait for the GIL."""

from __future__ import annotations

import ctypes
import os

from kafkacore.wire import _gil_handoff as gil

native = ctypes.CDLL(gil.__file__)


def test_nobody_waits_in_a_forked_child() -> None:
    native.kc_gil_handoff_request()
    try:
        assert gil.waiting()
        child = os.fork()
        if child == 0:
            os._exit(1 if gil.waiting() else 0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert gil.waiting()
    finally:
        native.kc_gil_handoff_received()
    assert not gil.waiting()
