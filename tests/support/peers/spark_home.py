"""Spark's home folder for the programs of the tests, which start faster with it."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import pyspark
from peers.jars import filled

INSTALLED = Path(pyspark.__file__).resolve().parent


@functools.cache
def spark_home() -> Path:
    """Return a folder of links to everything in PySpark's package except the archive of its modules.

    Spark's workers would import PySpark from that archive, which has no byte code: each process that Spark
    starts would compile it first, which takes longer than most of its work in a test.
    """

    def fill(folder: Path) -> None:
        for entry in INSTALLED.iterdir():
            if entry.name != "python":
                (folder / entry.name).symlink_to(entry)

    key = hashlib.sha256(f"{INSTALLED} {pyspark.__version__}".encode()).hexdigest()[:16]
    return filled("spark", key, fill)
