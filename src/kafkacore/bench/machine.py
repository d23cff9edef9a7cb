"""Describe the machine and the versions of the software of a benchmark."""

from __future__ import annotations

import os
import platform
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TypedDict

#: Peer (a client that is compared with kafkacore) → names of its distribution package and of its module.
DISTRIBUTIONS = {
    "confluent": ("confluent-kafka", "confluent_kafka"),
    "kafka-python": ("kafka-python", "kafka"),
    "aiokafka": ("aiokafka", "aiokafka"),
}
_OPTIONAL = ("uvloop", "lz4", "zstandard", "cramjam", "pyarrow")


class Machine(TypedDict):
    """Description of the machine in a result."""

    cpu: str
    cores: int
    memory_gib: float
    system: str
    python: str
    words: str


def describe_machine() -> Machine:
    """Return CPU model, cores, memory, operating system and Python.

    The field ``words`` contains all of these as text.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    cpu = _cpu_model()
    system = f"{platform.system()} {platform.release()}"
    python = f"{platform.python_implementation()} {platform.python_version()}"
    plural = "" if cores == 1 else "s"
    return {
        "cpu": cpu,
        "cores": cores,
        "memory_gib": round(memory_gib, 1),
        "system": system,
        "python": python,
        "words": (
            f"{cpu}, {cores} core{plural}, {memory_gib:.0f} GiB of memory, {system}, {python}; "
            "clients and broker on the same machine unless stated otherwise"
        ),
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()


def missing_peer(peer: str) -> str | None:
    """Return why a Python peer cannot run and what to install, or ``None`` if it can run."""
    distribution, module = DISTRIBUTIONS[peer]
    if find_spec(module) is not None:
        return None
    return f"{distribution} is not installed: pip install 'kafkacore[bench]'"


def missing_for_arrow() -> str | None:
    """Return what to install for the mode ``arrow``, or ``None`` if it can run."""
    lacking = [module for module in ("pyarrow", "numpy") if find_spec(module) is None]
    if not lacking:
        return None
    return f"the mode arrow needs {' and '.join(lacking)}: pip install 'kafkacore[bench]'"


def versions(peers: list[str]) -> dict[str, str]:
    """Return the versions of kafkacore, the peers, and their optional dependencies."""
    names = ["kafkacore", *(DISTRIBUTIONS[peer][0] for peer in peers if peer in DISTRIBUTIONS), *_OPTIONAL]
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    if "confluent" in peers:
        found["librdkafka"] = str(import_module("confluent_kafka").libversion()[0])
    return found
