"""Passwords in options: references are resolved, and no log, plan, file or command line contains one."""

import logging
import pickle
import re
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from eventually import BUDGET_S

from kafkacore.errors import KafkaConfigurationError
from kafkacore.security.references import ALLOWED_PATHS, ALLOWED_VARIABLES
from kafkacore.spark.options.client_arguments import consumer_configs
from kafkacore.spark.reader.options import parse_options
from kafkacore.spark.secrets import REDACTION_REGEX
from kafkacore.spark.sink.options import SinkOptions, parse_sink_options
from kafkacore.spark.source import KafkaCoreDataSource
from kafkacore.spark.typed.options import parse_format_options

#: A secret whose text occurs nowhere else.
MARK = "hunter2-zq7"
JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="{MARK},x";'
SECRETS = {
    "kafka.sasl.jaas.config": JAAS,
    "kafka.sasl.password": MARK,
    "kafka.sasl.plain.password": MARK,
    "kafka.ssl.key.password": MARK,
    "kafka.ssl.keystore.key": f"-----BEGIN PRIVATE KEY----- {MARK}",
}


def producer_configs(given):
    return SinkOptions(given).producer_configs


# ---- References --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("configs", [consumer_configs, producer_configs])
def test_references_reach_the_client_resolved(configs, monkeypatch):
    monkeypatch.setenv("PIPE_PASSWORD", MARK)
    given = {"security_protocol": "SASL_SSL", "sasl_password": "${env:PIPE_PASSWORD}"}
    with pytest.raises(KafkaConfigurationError, match=f"{ALLOWED_VARIABLES} of Spark's driver and executors"):
        configs(given)
    monkeypatch.setenv(ALLOWED_VARIABLES, "PIPE_PASSWORD")
    assert configs(given)["sasl_plain_password"] == MARK


@pytest.mark.parametrize(
    "name",
    [
        "kafka.client.id",
        "kafka.client.rack",
        "kafka.bootstrap.servers",
        "kafka.sasl.username",
        "kafka.group.id",
    ],
)
@pytest.mark.parametrize("streaming", [True, False])
def test_option_that_holds_no_secret_is_refused_a_reference(name, streaming, tmp_path, monkeypatch):
    """Reject a reference in an option that is not a secret (CVE-2024-31141).

    ``kafka.client.id=${file:/etc/passwd}`` would send the file to the broker.
    """
    (tmp_path / "secret").write_text(MARK)
    monkeypatch.setenv(ALLOWED_PATHS, str(tmp_path))
    options = {
        "kafka.bootstrap.servers": "h:1",
        "kafka.security.protocol": "SASL_PLAINTEXT",
        name: f"${{file:{tmp_path}/secret}}",
    }
    for parse, place in ((parse_options, {"subscribe": "t"}), (parse_sink_options, {"topic": "t"})):
        with pytest.raises(KafkaConfigurationError, match=f"{name} contains a reference") as refused:
            parse(options | place, streaming=streaming)
        assert MARK not in str(refused.value)


def test_user_in_a_login_module_is_refused_a_reference(monkeypatch):
    monkeypatch.setenv("PIPE_PASSWORD", MARK)
    monkeypatch.setenv(ALLOWED_VARIABLES, "PIPE_PASSWORD")
    jaas = 'PlainLoginModule required username="${env:PIPE_PASSWORD}" password="${env:PIPE_PASSWORD}";'
    with pytest.raises(
        KafkaConfigurationError, match=r"^username in kafka\.sasl\.jaas\.config contains a ref"
    ):
        consumer_configs({"security_protocol": "SASL_SSL", "sasl_jaas_config": jaas})


def test_schema_registrys_address_is_refused_a_reference(monkeypatch):
    monkeypatch.setenv("PIPE_PASSWORD", MARK)
    monkeypatch.setenv(ALLOWED_VARIABLES, "PIPE_PASSWORD")
    given = {"value.format": "avro", "schema.registry.auth": "u:${env:PIPE_PASSWORD}"}
    assert parse_format_options(given).value.resolved()["schema.registry.auth"] == f"u:{MARK}"
    given["schema.registry.url"] = "http://h/${env:PIPE_PASSWORD}"
    with pytest.raises(KafkaConfigurationError, match=r"^schema\.registry\.url contains a reference"):
        parse_format_options(given).value.resolved()


@pytest.mark.parametrize(
    ("configs", "name"),
    [
        (consumer_configs, "fetch_min_bytes"),
        (consumer_configs, "check_crcs"),
        (producer_configs, "batch_size"),
        (producer_configs, "enable_idempotence"),
    ],
)
def test_value_of_the_wrong_kind_is_not_in_the_message(configs, name):
    with pytest.raises(KafkaConfigurationError, match="must be") as refused:
        configs({name: MARK})
    assert MARK not in str(refused.value)


@pytest.mark.parametrize(
    "options",
    [
        f"[startingOffsets=earliest, kafka.sasl.jaas.config={JAAS}, subscribe=t]",
        f"[kafka.ssl.key.password={MARK}, subscribe=t]",
        f"[subscribe=t, schema.registry.auth=user:{MARK}]",
        f"[KAFKA.SASL.PASSWORD={MARK}]",
        f"[schema.registry.auth=user:a,{MARK}, subscribe=t]",
        f"[kafka.sasl.password=a]b, {MARK}, subscribe=t]",
        f'[kafka.sasl.password=a"b{MARK}, subscribe=t]',
        f"[storage.account_key={MARK}, subscribe=t]",
        f'[storage.client_kwargs={{"key": "k", "other": "{MARK}"}}, subscribe=t]',
    ],
)
def test_what_spark_is_to_leave_out_of_plans_is_the_secret_alone(options):
    shown = re.sub(REDACTION_REGEX, "*", options)
    assert MARK not in shown
    assert ("subscribe=t" in shown) == ("subscribe=t" in options)
    assert shown.endswith("]")


# ---- Logs, files and command lines -------------------------------------------------------------------------


def written(spark, *more):
    """Return the text of every file of the session and of the folders ``more``, by path."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    session = Path(spark.conf.get("spark.eventLog.dir").removeprefix("file:")).parent
    files = [file for folder in (session, *more) for file in folder.rglob("*") if file.is_file()]
    return {str(file): file.read_bytes().decode(errors="replace") for file in files}


def commands():
    """Yield the command line of every process, as ``ps`` shows it."""
    for entry in Path("/proc").iterdir():
        try:
            yield (entry / "cmdline").read_text() if entry.name.isdigit() else ""
        except OSError:
            continue


def plans(frame):
    shown = StringIO()
    with redirect_stdout(shown):
        for mode in ("extended", "formatted", "codegen" if not frame.isStreaming else "simple"):
            frame.explain(mode)
    return shown.getvalue() + repr(frame) + str(frame._jdf.queryExecution())


@pytest.fixture
def everything_logged(spark, caplog):
    # The level is INFO from the start, but Spark removes its filter only when the level changes.
    for level in ("WARN", "INFO"):
        spark.sparkContext.setLogLevel(level)
    # Not DEBUG, at which PySpark's bridge to the JVM logs every call of the user's process.
    with caplog.at_level(logging.INFO):
        yield caplog
    spark.sparkContext.setLogLevel("WARN")


@pytest.mark.timeout(240)
def test_no_secret_is_in_plans_logs_events_checkpoints_or_errors(
    spark, our_broker, make_topic, tmp_path, everything_logged
):
    topic = make_topic([(0, None, b"v")])
    options = {"kafka.bootstrap.servers": our_broker.bootstrap_servers, "subscribe": topic, **SECRETS}
    texts = []
    batch = spark.read.format("kafkacore").options(**options).load()
    texts.append(plans(batch))
    # The secrets have no effect on a plaintext connection, as in Java.
    assert batch.count() == 1
    stream = spark.readStream.format("kafkacore").options(**options, startingOffsets="earliest").load()
    texts.append(plans(stream))
    assert "(redacted)" in texts[-1]
    writer = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.queryName("with secrets").trigger(availableNow=True).start()
    assert query.awaitTermination(2 * BUDGET_S)
    texts.append(repr(query.recentProgress))
    texts += refusals(spark, options, topic, tmp_path / "refused")
    texts += [everything_logged.text, *commands()]
    found = written(spark, tmp_path)
    # Make sure that the search covers the output of the query.
    assert any("with secrets" in text for place, text in found.items() if "/events/" in place)
    assert any(" INFO " in text for place, text in found.items() if place.endswith("spark.log"))
    assert [text[:2_000] for text in texts if MARK in text] == []
    assert [place for place, text in found.items() if MARK in text] == []


def refusals(spark, options, topic, checkpoint):
    """Run a read, a stream and a write that fail with these secrets, and return their error messages."""
    options = {**options, "kafka.security.protocol": "SASL_SSL"}

    def read():
        spark.read.format("kafkacore").options(**options).load().collect()

    def stream():
        frame = spark.readStream.format("kafkacore").options(**options).load()
        writer = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination(2 * BUDGET_S)

    def write():
        given = {name: text for name, text in options.items() if name != "subscribe"}
        frame = spark.createDataFrame([("v",)], "value string")
        frame.write.format("kafkacore").options(**given, topic=topic).mode("append").save()

    said = []
    for refused in (read, stream, write):
        with pytest.raises(Exception, match=r"ssl\.keystore\.key must be given together") as failed:
            refused()
        said.append(str(failed.value))
    return said


def test_objects_that_hold_secrets_do_not_show_them():
    # Other options are hidden too, because the user may put a secret into any of them.
    options = {"kafka.bootstrap.servers": "h:9092", "kafka.client.id": MARK}
    read = KafkaCoreDataSource({**options, **SECRETS, "subscribe": "t"})
    decoded = {"value.format": "json", "schema.registry.auth": f"u:{MARK}"}
    typed = KafkaCoreDataSource({**options, "subscribe": "t", **decoded})
    written = KafkaCoreDataSource({**options, "topic": "t"})
    for made in (
        read.reader(spark_schema()),
        read.streamReader(spark_schema()),
        typed.reader(spark_schema()),
        written.writer(spark_schema(), overwrite=False),
        written.streamWriter(spark_schema(), overwrite=False),
    ):
        shown = "".join(repr(value) for value in (made, vars(made), *vars(made).values()))
        assert "kafkacore" in shown
        assert MARK not in shown
        # The pickled object does contain the secret: Spark sends it to the workers through a pipe.
        assert MARK.encode() in pickle.dumps(made)


def spark_schema():
    from pyspark.sql.types import StructType

    return StructType().add("value", "binary")


def test_module_of_secrets_needs_no_pyspark():
    assert "pyspark" not in Path(sys.modules["kafkacore.spark.secrets"].__file__).read_text()
