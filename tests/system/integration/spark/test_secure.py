"""Spark's source and sink on Apache Kafka with TLS and SASL, by the options of the built-in source.

No plan and no error message contains a secret.
"""

import uuid
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from eventually import BUDGET_S
from peers.secure_kafka import PASSWORDS
from system.spark.test_secrets import everything_logged, written

__all__ = ["everything_logged"]
SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="%s";'


def options_of(settings, password, **more):
    """Return the options by Java's names, with the CA certificates as text for a driver without the file."""
    return {
        "kafka.bootstrap.servers": settings["bootstrap_servers"],
        "kafka.security.protocol": "SASL_SSL",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.certificates": Path(settings["ssl_cafile"]).read_text().replace("\n", " "),
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": SCRAM.replace("%s", password),
        **more,
    }


def plans(frame):
    shown = StringIO()
    with redirect_stdout(shown):
        frame.explain("formatted")
    return shown.getvalue() + repr(frame)


@pytest.mark.timeout(240)
def test_rows_go_there_and_back_over_tls_and_scram(spark, secure_kafka, tmp_path, monkeypatch):
    settings = secure_kafka.settings("SASL_SSL")
    topic = f"spark-secure-{uuid.uuid4().hex[:8]}"
    secret = tmp_path / "password"
    secret.write_text(PASSWORDS["alice"] + "\n")
    options = options_of(settings, f"${{file:{secret}}}")
    rows = spark.createDataFrame([("a", "1"), ("b", "2")], "key string, value string")
    rows.write.format("kafkacore").options(**options, topic=topic).mode("append").save()
    read = spark.read.format("kafkacore").options(**options, subscribe=topic).load()
    assert sorted((bytes(row.key), bytes(row.value)) for row in read.collect()) == [
        (b"a", b"1"),
        (b"b", b"2"),
    ]
    stream = spark.readStream.format("kafkacore").options(**options, subscribe=topic)
    stream = stream.option("startingOffsets", "earliest").load()
    query = (
        stream.writeStream.format("kafkacore")
        .options(**options, topic=f"{topic}-copy", checkpointLocation=str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(2 * BUDGET_S)
    copied = spark.read.format("kafkacore").options(**options, subscribe=f"{topic}-copy").load()
    assert copied.count() == 2
    assert PASSWORDS["alice"] not in plans(read) + repr(query.recentProgress)


@pytest.mark.timeout(240)
def test_no_log_event_or_checkpoint_has_the_password_that_let_a_query_in(
    spark, secure_kafka, tmp_path, everything_logged
):
    """Keep the password in the options as plain text, not as a reference to a secret store."""
    topic = f"spark-canary-{uuid.uuid4().hex[:8]}"
    # All that our loggers write on the driver, and Spark's log at INFO.
    everything_logged.set_level(1, logger="kafkacore")
    options = options_of(secure_kafka.settings("SASL_SSL"), PASSWORDS["alice"])
    rows = spark.createDataFrame([("v",)], "value string")
    rows.write.format("kafkacore").options(**options, topic=topic).mode("append").save()
    stream = spark.readStream.format("kafkacore").options(**options, subscribe=topic)
    frame = stream.option("startingOffsets", "earliest").load()
    query = (
        frame.writeStream.format("kafkacore")
        .options(**options, topic=f"{topic}-copy", checkpointLocation=str(tmp_path / "checkpoint"))
        .queryName(topic)
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(2 * BUDGET_S)
    found = written(spark, tmp_path)
    # These files must exist, or the search below would prove nothing.
    for place in ("/events/", "/checkpoint/"):
        assert any(topic in text for name, text in found.items() if place in name), place
    assert any(" INFO " in text for name, text in found.items() if name.endswith("spark.log"))
    assert [name for name, text in found.items() if PASSWORDS["alice"] in text] == []
    assert PASSWORDS["alice"] not in everything_logged.text + plans(frame) + repr(query.recentProgress)


@pytest.mark.timeout(120)
def test_who_is_not_let_in_is_told_so_and_not_by_the_password(spark, secure_kafka):
    options = options_of(secure_kafka.settings("SASL_SSL"), "hunter2-zq7", subscribe="orders")
    frame = spark.read.format("kafkacore").options(**options).load()
    with pytest.raises(
        Exception, match="rejected the SCRAM-SHA-512 authentication of user 'alice'"
    ) as failed:
        frame.collect()
    assert "hunter2" not in str(failed.value) + plans_or_nothing(frame)


def plans_or_nothing(frame):
    """Return the plans, or the error message if planning fails, because planning contacts the broker, too."""
    try:
        return plans(frame)
    except Exception as error:  # noqa: BLE001 - it is looked at
        return str(error)
