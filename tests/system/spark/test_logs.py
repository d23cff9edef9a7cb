"""Warnings of kafkacore in a Spark program without a logging configuration."""

from __future__ import annotations

import subprocess
import sys

import pytest
from eventually import BUDGET_S

PROGRAM = """
import logging, sys
import kafkacore.spark
{setup}
logging.getLogger("kafkacore.client.x").warning("lost %d", 1)
logging.getLogger("kafkacore.client.x").info("found")
"""


@pytest.mark.parametrize(
    ("setup", "said"),
    [
        ("", "lost 1\n"),
        ("logging.basicConfig(format='root: %(message)s')", "root: lost 1\n"),
        ("logging.getLogger('kafkacore.client').addHandler(logging.StreamHandler())", "lost 1\n"),
        ("kafkacore.spark.log_to_stderr()", "lost 1\n"),
    ],
)
def test_warnings_reach_standard_error_once(setup: str, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(setup=setup)],
        capture_output=True, text=True, check=True, timeout=BUDGET_S,
    )  # fmt: skip
    assert done.stderr == said
