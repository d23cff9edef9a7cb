"""The parts of a consumer on a model cluster and a virtual clock, and Ctrl-C at any executed line."""

import importlib.util
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from eventually import BUDGET_S
from gc_callbacks import removed_gc_callbacks
from model.consumer_fixtures import clock, make_consumer, make_fetcher, make_network_client

__all__ = ["clock", "ctrl_c", "make_consumer", "make_fetcher", "make_network_client"]

INTERRUPTER = Path(__file__).parents[2] / "support" / "model" / "ctrl_c_at.pyx"


@pytest.fixture(scope="module")
def ctrl_c(tmp_path_factory):
    """Compile and import ``model/ctrl_c_at.pyx``."""
    folder = tmp_path_factory.mktemp("ctrl_c")
    source = Path(shutil.copy(INTERRUPTER, folder))
    command = [sys.executable, "-m", "Cython.Build.Cythonize", "-i", "-3", "-q", str(source)]
    subprocess.run(command, check=True, capture_output=True, timeout=2 * BUDGET_S)
    (built,) = folder.glob("ctrl_c_at*.so")
    spec = importlib.util.spec_from_file_location("ctrl_c_at", built)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with removed_gc_callbacks():
        yield module
    signal.signal(signal.SIGINT, before)
