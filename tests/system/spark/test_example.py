"""The Spark example runs unchanged, as a program with its own session."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from eventually import BUDGET_S

from kafkacore.spark.session import SHORT_LIVED_JVM

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "spark_stream.py"


@pytest.mark.timeout(260)
def test_spark_example_counts_the_words_of_a_topic(our_broker, make_topic):
    topic = make_topic([(0, None, b"tea"), (1, None, b"milk"), (1, None, b"tea")])
    command = [sys.executable, str(EXAMPLE), our_broker.bootstrap_servers, topic]
    # Spark's workers must run this Python, as in an activated environment, because it has kafkacore.
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_SUBMIT_OPTS": SHORT_LIVED_JVM}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=4 * BUDGET_S, check=False
    )
    assert done.stdout.splitlines() == ["milk 1", "tea 2"], done.stderr[-2000:]
    assert done.returncode == 0
