"""Logs of Spark's Python workers with every logger at the lowest level: they contain no password."""

import json
import os
import subprocess
import sys
import uuid

import pytest
from eventually import BUDGET_S
from peers.secure_listeners import PASSWORDS

from kafkacore.spark.session import SHORT_LIVED_JVM

WRONG_PASSWORD = "hunter2-zq7"
#: Code that Python imports at its start. It skips the program itself, where PySpark's bridge logs each call.
EVERYTHING_LOGGED = """
import logging, os, sys
from pathlib import Path

class Kept(logging.Handler):
    def emit(self, record):
        with open(f"{os.environ['WORKER_LOGS']}/{os.getpid()}.log", "a") as file:
            file.write(f"{record.name} {record.levelno} {self.format(record)} {record.args!r}\\n")

if any(word.startswith("pyspark.") for word in sys.orig_argv):
    logging.basicConfig(level=1, handlers=[Kept()])
"""
#: A program that writes rows, reads them as a table and a stream, and then tries a wrong password.
PROGRAM = """
import json, sys
from pathlib import Path
from kafkacore.spark.session import spark_session

folder, topic, options, wrong = Path(sys.argv[1]), sys.argv[2], *map(json.loads, sys.stdin)
with spark_session("worker logs", folder, folder / "jvm.txt") as spark:
    rows = spark.createDataFrame([("v",)], "value string")
    rows.write.format("kafkacore").options(**options, topic=topic).mode("append").save()
    assert spark.read.format("kafkacore").options(**options, subscribe=topic).load().count() == 1
    stream = spark.readStream.format("kafkacore").options(**options, subscribe=topic)
    writer = stream.option("startingOffsets", "earliest").load().writeStream.format("kafkacore")
    writer = writer.options(**options, topic=topic, checkpointLocation=str(folder / "checkpoint"))
    assert writer.trigger(availableNow=True).start().awaitTermination(100)
    for refused in (
        lambda: spark.read.format("kafkacore").options(**wrong, subscribe=topic).load().collect(),
        lambda: rows.write.format("kafkacore").options(**wrong, topic=topic).mode("append").save(),
    ):
        try:
            refused()
        except Exception as error:
            print(error)
"""


def options_of(settings: dict[str, str], password: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": settings["bootstrap_servers"],
        "kafka.security.protocol": "SASL_SSL",
        "kafka.ssl.ca.location": settings["ssl_cafile"],
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.username": "alice",
        "kafka.sasl.password": password,
    }


@pytest.mark.timeout(260)
def test_no_worker_of_spark_logs_a_password_at_any_level(secure_broker, tmp_path):
    settings = secure_broker.settings("SASL_SSL", "SCRAM-SHA-512")
    (tmp_path / "logs").mkdir()
    (tmp_path / "sitecustomize.py").write_text(EVERYTHING_LOGGED)
    passwords = (PASSWORDS["alice"], WRONG_PASSWORD)
    topic = f"worker-logs-{uuid.uuid4().hex[:8]}"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), topic],
        input="\n".join(
            json.dumps(options_of(settings, each)) for each in (PASSWORDS["alice"], WRONG_PASSWORD)
        ),
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)]),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_SUBMIT_OPTS": SHORT_LIVED_JVM,
            "WORKER_LOGS": str(tmp_path / "logs"),
        },
        capture_output=True,
        text=True,
        timeout=4 * BUDGET_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    logs = {file.name: file.read_text() for file in (tmp_path / "logs").iterdir()}
    said = "".join(logs.values())
    # Make sure that the logs contain successful and failed authentications.
    assert said.count("authenticated to localhost with SCRAM-SHA-512") > 2
    assert "rejected the SCRAM-SHA-512 authentication of user 'alice'" in said
    assert done.stdout.count("rejected the SCRAM-SHA-512 authentication of user 'alice'") >= 2
    shown = [*logs.values(), done.stdout, done.stderr, (tmp_path / "jvm.txt").read_text()]
    assert [text[:500] for text in shown for each in passwords if each in text] == []
