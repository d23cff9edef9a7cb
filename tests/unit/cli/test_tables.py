"""Tables and JSON of commands."""

import json

import pytest

from kafkacore.cli.common import CommandError
from kafkacore.cli.tables import print_rows, raise_failures

ROWS = [
    {"topic": "a\x1b[31m", "log_end_offset": 5, "is_internal": False, "replicas": [1, 2], "rack": None},
    {"topic": "orders", "log_end_offset": None, "is_internal": True, "replicas": [], "rack": ""},
]


def test_table_aligns_numbers_and_escapes_text(capsys):
    print_rows(ROWS)
    assert capsys.readouterr().out.splitlines() == [
        r"topic      log-end-offset  is-internal  replicas  rack",
        r"a\x1b[31m               5  no           1,2       -",
        r"orders                  -  yes          -         -",
    ]


def test_json_has_all_names(capsys):
    print_rows(ROWS, as_json=True, columns=["topic"])
    assert json.loads(capsys.readouterr().out) == ROWS
    print_rows([], as_json=True)
    assert capsys.readouterr().out == "[]\n"


def test_table_without_rows_is_empty(capsys):
    print_rows([])
    assert capsys.readouterr().out == ""


def test_failures_are_one_sentence():
    raise_failures([])
    with pytest.raises(CommandError, match=r"^one; two$"):
        raise_failures(["one", "two"])
