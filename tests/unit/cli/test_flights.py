"""The demo's data set, read without importing the package that contains it."""

import csv
import io
import zipfile
from itertools import islice

from kafkacore.cli import flights


def test_every_row_of_the_data_set_becomes_a_flight():
    with zipfile.ZipFile(flights.csv_path()) as archive:
        rows = csv.DictReader(io.TextIOWrapper(archive.open("flights.csv"), "utf-8"))
        assert list(rows.fieldnames or ()) == list(flights.COLUMNS)
        assert sum(1 for _ in rows) == flights.RECORD_COUNT


def test_a_flight_has_typed_values_and_none_where_there_is_nothing():
    first = next(flights.read_flights())
    assert (first["carrier"], first["dep_time"], first["month"]) == ("UA", 517, 1)
    cancelled = next(f for f in flights.read_flights() if f["dep_time"] is None)
    assert cancelled["dep_delay"] is None
    assert cancelled["carrier"] is not None


def test_limit_gives_the_first_flights():
    assert list(flights.read_flights(3)) == list(islice(flights.read_flights(), 3))
