"""``read_topic`` and ``RecordDecoder`` with our broker, and into polars, pandas and duckdb."""

import asyncio
import json
import struct
import subprocess
import sys
import threading
import uuid
from datetime import UTC, datetime

import duckdb
import polars
import pyarrow as pa
import pytest
from decode.registry_server import scripted_registry
from eventually import BUDGET_MS, BUDGET_S

from kafkacore import KafkaAdminClient, KafkaConsumer, KafkaProducer, RecordDecoder, read_topic
from kafkacore.admin import NewTopic
from kafkacore.aio import AIOKafkaConsumer
from kafkacore.errors import KafkaTimeoutError, MalformedRecordError, UnknownTopicOrPartitionError

ORDER = pa.schema({"item": pa.string(), "count": pa.int64()})
#: The time of the first record; each further record is a second later.
FIRST_MS = 1_000_000_000_000


@pytest.fixture
def servers(kafka_broker):
    return kafka_broker.bootstrap_servers


@pytest.fixture
def make_topic(servers):
    """Return a function that creates a topic with the given number of partitions, and returns its name."""

    def make(partitions=1):
        name = f"frames-{uuid.uuid4().hex[:8]}"
        with KafkaAdminClient(bootstrap_servers=servers) as admin:
            admin.create_topics([NewTopic(name, partitions)])
        return name

    return make


@pytest.fixture
def send(servers):
    """Return a function that writes values to a partition."""

    def send(topic, values, partition=0, **configs):
        with KafkaProducer(bootstrap_servers=servers, **configs) as producer:
            for number, value in enumerate(values):
                producer.send(topic, value, partition=partition, timestamp_ms=FIRST_MS + 1000 * number)
            producer.flush()

    return send


@pytest.fixture
def orders(make_topic, send):
    """Return a topic with ten orders in two partitions."""
    name = make_topic(2)
    for partition in range(2):
        rows = [{"item": "apple", "count": 10 * partition + number} for number in range(5)]
        send(name, [json.dumps(row).encode() for row in rows], partition)
    return name


@pytest.fixture
def read(servers):
    """Return ``read_topic`` for the broker, with a limit for a test that would hang."""

    def read(topic, **arguments):
        return read_topic(topic, bootstrap_servers=servers, idle_timeout_ms=BUDGET_MS, **arguments)

    return read


def read_json(read, topic, **arguments):
    return read(topic, value_format="json", schema=ORDER, **arguments)


# ---- Ranges ----------------------------------------------------------------------------------------------
def test_all_partitions_are_read_in_order(read, orders):
    table = read_json(read, orders, columns=["_topic", "_partition", "_offset", "item", "count"])
    assert table.to_pylist() == [
        {"_topic": orders, "_partition": p, "_offset": o, "item": "apple", "count": 10 * p + o}
        for p in range(2)
        for o in range(5)
    ]


@pytest.mark.parametrize(
    ("start", "end", "counts"),
    [
        (3, "latest", [3, 4, 13, 14]),
        ({0: 4}, {1: 1}, [4, 10]),
        ("earliest", datetime.fromtimestamp(FIRST_MS / 1000 + 2, UTC), [0, 1, 10, 11]),
        (datetime.fromtimestamp(FIRST_MS / 1000 + 3.5, UTC), "latest", [4, 14]),
        (4, 2, []),
        ("latest", "latest", []),
        (99, 200, []),
    ],
)
def test_range_is_read(read, orders, start, end, counts):
    table = read_json(read, orders, start=start, end=end, columns=["count"])
    assert table.column("count").to_pylist() == counts


def test_empty_topic_is_an_empty_table(read, make_topic):
    table = read_json(read, make_topic(3))
    assert table.num_rows == 0
    assert table.schema.field("count").type == pa.int64()


def test_unknown_topic_is_an_error_and_not_created(read, servers):
    with pytest.raises(UnknownTopicOrPartitionError, match="topic 'no-such-orders' does not exist"):
        read("no-such-orders")
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        assert "no-such-orders" not in admin.list_topics()


def test_broker_that_stopped_is_a_timeout():
    with pytest.raises(KafkaTimeoutError):
        read_topic("t", bootstrap_servers="127.0.0.1:1", bootstrap_timeout_ms=0, request_timeout_ms=600)


def test_read_ends_although_a_producer_writes(read, make_topic, servers):
    topic, stop = make_topic(), threading.Event()
    with KafkaProducer(bootstrap_servers=servers, linger_ms=0) as producer:
        producer.send(topic, b"first").get(timeout=BUDGET_S)

        def write():
            while not stop.is_set():
                producer.send(topic, b"next").get(timeout=BUDGET_S)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            offsets = read(topic, columns=["offset"]).column(0).to_pylist()
        finally:
            stop.set()
            writer.join()
    assert offsets == list(range(len(offsets)))
    assert offsets


@pytest.mark.parametrize("isolation_level", ["read_committed", "read_uncommitted"])
def test_transaction_markers_at_the_end_are_passed(read, make_topic, servers, isolation_level):
    topic, transactional_id = make_topic(), uuid.uuid4().hex
    with KafkaProducer(bootstrap_servers=servers, transactional_id=transactional_id) as producer:
        producer.init_transactions()
        for value, ends in [(b"kept", True), (b"aborted", False)]:
            producer.begin_transaction()
            producer.send(topic, value)
            producer.flush()
            (producer.commit_transaction if ends else producer.abort_transaction)()
    values = read(topic, isolation_level=isolation_level).column("value").to_pylist()
    assert values == ([b"kept"] if isolation_level == "read_committed" else [b"kept", b"aborted"])


def test_open_transaction_ends_the_read_at_the_last_stable_offset(read, make_topic, servers):
    topic = make_topic()
    with KafkaProducer(bootstrap_servers=servers, transactional_id=uuid.uuid4().hex) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"open").get(timeout=BUDGET_S)
        assert read(topic, isolation_level="read_committed").num_rows == 0
        assert read(topic).num_rows == 1
        producer.abort_transaction()


# ---- Formats ---------------------------------------------------------------------------------------------
def test_malformed_value_is_null_or_an_error(read, orders, send):
    send(orders, [b"no JSON"], partition=1)
    table = read_json(read, orders, start=5, columns=["count", "_value", "_corrupt_record"])
    assert table.to_pylist() == [{"count": None, "_value": b"no JSON", "_corrupt_record": b"no JSON"}]
    assert read_json(read, orders, mode="DROPMALFORMED").num_rows == 10
    with pytest.raises(MalformedRecordError, match=f"the value of {orders}-1 at offset 5 is malformed"):
        read_json(read, orders, mode="FAILFAST")


def test_avro_with_the_latest_schema_of_the_registry(read, make_topic, send):
    topic = make_topic()
    schema = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}
    send(topic, [struct.pack(">bi", 0, 7) + b"\x54"])
    with scripted_registry() as registry:
        registry.schema(7, schema)
        registry.answer(f"/subjects/{topic}-value/versions/latest", (200, {"schema": json.dumps(schema)}))
        options = {"schema.registry.url": registry.url}
        table = read(topic, value_format="avro", columns=["id"], format_options=options)
        wanted = pa.schema({"id": pa.int64()})
        same = read(topic, value_format="avro", schema=wanted, columns=["id"], format_options=options)
    assert table.to_pylist() == same.to_pylist() == [{"id": 42}]


def test_polled_columns_are_decoded(orders, servers):
    decoder = RecordDecoder(value_format="json", schema=ORDER)
    found = 0
    settings = {"bootstrap_servers": servers, "auto_offset_reset": "earliest"}
    with KafkaConsumer(orders, **settings) as consumer:
        while found < 10:
            table = decoder.table(consumer.poll_arrow(BUDGET_MS))
            assert set(table.column("item").to_pylist()) <= {"apple"}
            found += table.num_rows


def test_polled_columns_of_an_event_loop_are_decoded(orders, servers):
    async def main():
        decoder = RecordDecoder(value_format="json", schema=ORDER)
        settings = {"bootstrap_servers": servers, "auto_offset_reset": "earliest"}
        async with AIOKafkaConsumer(orders, **settings) as consumer:
            return decoder.table(await consumer.poll_arrow(BUDGET_MS, columns=decoder.fetched))

    assert set(asyncio.run(main()).column("item").to_pylist()) == {"apple"}


# ---- Data frames -----------------------------------------------------------------------------------------
def test_polars_in_one_line(read, orders):
    frame = polars.from_arrow(read_json(read, orders))
    assert frame.group_by("_partition").agg(polars.col("count").sum()).sort("_partition").rows() == [
        (0, 10),
        (1, 60),
    ]


def test_pandas_in_one_line(read, orders):
    frame = read_json(read, orders).to_pandas()
    assert frame.groupby("_partition")["count"].sum().to_dict() == {0: 10, 1: 60}


def test_duckdb_in_one_line(read, orders):
    found = duckdb.from_arrow(read_json(read, orders)).aggregate("_partition, sum(count)").order("_partition")
    assert found.fetchall() == [(0, 10), (1, 60)]


# ---- Without pyarrow -------------------------------------------------------------------------------------
@pytest.mark.parametrize("call", ["RecordDecoder()", "read_topic('orders')"])
def test_missing_pyarrow_is_one_clear_sentence(call):
    code = (
        "import sys\n"
        "sys.modules['pyarrow'] = None\n"
        "import kafkacore\n"
        f"try: kafkacore.{call}\n"
        "except ModuleNotFoundError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "tables of records need pyarrow: run pip install 'kafkacore[arrow]'\n"


def test_import_does_not_load_pyarrow():
    code = "import sys\nfrom kafkacore import read_topic\nassert 'pyarrow' not in sys.modules\n"
    subprocess.run([sys.executable, "-c", code], check=True)
