"""Compatibility with kafka-python's consumer: each method and argument exists and has the same effect."""

import inspect
import math
import socket

import kafka.consumer.fetcher
import pytest
from model.consumer_cluster import read
from model.fetch_log import FetchLog, simple_batch

import kafkacore
from kafkacore import ConsumerRecord, IsolationLevel, KafkaConsumer, OffsetSpec
from kafkacore.client.config import RETIRED_SETTINGS
from kafkacore.consumer.config import resolve
from kafkacore.errors import IllegalStateError, KafkaConfigurationError
from kafkacore.protocol.generated.fetch import FetchRequest
from kafkacore.structs import TopicPartition
from kafkacore.testing import VirtualClock

A0 = TopicPartition("a", 0)
#: Consumer settings that kafka-python had before 3.0.
OLD_NAMES = {"legacy_iterator", "api_version_auto_timeout_ms", "sock_chunk_bytes", "sock_chunk_buffer_count"}
#: Settings whose default differs from kafka-python's but has the same meaning.
OWN_DEFAULTS = {
    "client_id",
    "default_offset_commit_callback",
    "kafka_client",
    "partition_assignment_strategy",
    "receive_buffer_bytes",
    # Java's default; kafka-python waits up to 30 s before it reconnects to a restarted broker.
    "reconnect_backoff_max_ms",
    "selector",
    "send_buffer_bytes",
}


# ---- Methods -----------------------------------------------------------------------------------------------
def test_every_method_of_kafka_pythons_consumer_is_there_with_its_arguments():
    methods = {
        name: method
        for name, method in inspect.getmembers(kafka.KafkaConsumer, inspect.isfunction)
        if not name.startswith("_")
    }
    assert len(methods) >= 25
    for name, method in methods.items():
        theirs = list(inspect.signature(method).parameters.values())
        ours = list(inspect.signature(getattr(KafkaConsumer, name)).parameters.values())
        named = [(each.name, each.default, each.kind) for each in ours[: len(theirs)]]
        assert named == [(each.name, each.default, each.kind) for each in theirs], name
        assert all(each.default is not inspect.Parameter.empty for each in ours[len(theirs) :]), name


def test_consumer_is_an_iterator_and_a_context_as_theirs():
    for name in ("__iter__", "__next__", "__enter__", "__exit__"):
        assert hasattr(kafka.KafkaConsumer, name)
        assert hasattr(KafkaConsumer, name)


def test_every_public_name_of_kafka_python_is_ours():
    assert set(kafka.__all__) - {"KafkaAdminClient"} <= set(kafkacore.__all__)
    assert all(getattr(kafkacore, name) is not None for name in kafkacore.__all__)
    assert set(kafkacore.__all__) <= set(dir(kafkacore))


# ---- Arguments ---------------------------------------------------------------------------------------------
def test_every_argument_is_known_and_has_the_same_default():
    theirs, ours = kafka.KafkaConsumer.DEFAULT_CONFIG, KafkaConsumer.DEFAULT_CONFIG
    assert set(theirs) <= set(ours)
    differing = {name for name, default in theirs.items() if ours[name] != default}
    assert differing == OWN_DEFAULTS


@pytest.mark.parametrize("name", sorted(kafka.KafkaConsumer.DEFAULT_CONFIG))
@pytest.mark.filterwarnings("ignore:kafka_client:DeprecationWarning")
def test_every_default_of_theirs_is_accepted(name):
    assert name in resolve({name: kafka.KafkaConsumer.DEFAULT_CONFIG[name]}) or name in RETIRED_SETTINGS


@pytest.mark.parametrize("name", sorted(OLD_NAMES))
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_names_of_before_3_0_are_taken(name):
    assert name in RETIRED_SETTINGS
    assert resolve({name: 1000})["max_poll_records"] == 500


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("max_pol_records", "max_poll_records"),
        ("fetch_max_byte", "fetch_max_bytes"),
        ("group", "group_id"),
        ("bootstrap_server", "bootstrap_servers"),
        ("auto_offset_rest", "auto_offset_reset"),
    ],
)
def test_unknown_argument_is_refused_with_the_nearest_name(wrong, near):
    with pytest.raises(KafkaConfigurationError, match=f"unknown setting '{wrong}'; did you mean '{near}'"):
        KafkaConsumer(**{wrong: 1})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fetch_min_bytes", -1),
        ("fetch_min_bytes", "1"),
        ("fetch_max_bytes", 0),
        ("fetch_max_bytes", math.inf),
        ("fetch_max_bytes", 2**31),
        ("fetch_max_wait_ms", 0.5),
        ("fetch_max_wait_ms", True),
        ("max_partition_fetch_bytes", None),
        ("max_poll_records", 0),
        ("max_poll_records", 1.5),
        ("consumer_timeout_ms", -2),
        ("check_crcs", 1),
        ("isolation_level", "READ_COMMITTED "),
        ("client_rack", 5),
        ("client_id", b"x"),
        ("max_decompressed_size", 0),
        ("metrics_num_samples", 0),
        ("metric_reporters", "x"),
        ("enable_incremental_fetch_sessions", "yes"),
        ("exclude_internal_topics", None),
        ("request_timeout_ms", math.inf),
        ("retry_backoff_ms", -1),
        ("api_version", (0, 8)),
    ],
)
def test_impossible_value_is_refused_with_name_and_value(name, value):
    with pytest.raises(KafkaConfigurationError, match=name):
        KafkaConsumer(**{name: value})


@pytest.mark.parametrize("levels", [kafka.IsolationLevel, IsolationLevel])
def test_isolation_level_is_a_member_or_its_name(levels):
    for level in levels:
        for value in (level, level.name.lower()):
            assert resolve({"isolation_level": value})["isolation_level"] == level.name.lower()
    with pytest.raises(KafkaConfigurationError, match="isolation_level"):
        resolve({"isolation_level": OffsetSpec.LATEST})


def test_whole_numbers_may_be_written_as_floats():
    config = resolve({"fetch_max_wait_ms": 100.0, "max_poll_records": 1e3})
    assert (config["fetch_max_wait_ms"], config["max_poll_records"]) == (100, 1000)
    assert all(isinstance(config[name], int) for name in ("fetch_max_wait_ms", "max_poll_records"))


def test_receive_limit_leaves_room_for_a_response():
    config = resolve({"fetch_max_bytes": 200_000_000, "max_partition_fetch_bytes": 50_000_000})
    assert config["receive_message_max_bytes"] == 250_000_000
    assert resolve({"receive_message_max_bytes": 300_000_000})["receive_message_max_bytes"] == 300_000_000


def test_settings_of_fetches_are_told_to_the_broker(make_consumer):
    consumer = make_consumer(
        {A0: FetchLog(simple_batch(0, 1))},
        "a",
        fetch_min_bytes=7,
        fetch_max_bytes=8000,
        fetch_max_wait_ms=90,
        max_partition_fetch_bytes=1000,
        client_rack="r1",
        isolation_level="read_committed",
        enable_incremental_fetch_sessions=False,
    )
    read(consumer)
    request = consumer.model.requests_of(FetchRequest)[0]
    assert (request.min_bytes, request.max_bytes, request.max_wait_ms) == (7, 8000, 90)
    assert request.topics[0].partitions[0].partition_max_bytes == 1000
    assert (request.rack_id, request.isolation_level, request.session_epoch) == ("r1", 1, -1)


def test_unchecked_crcs_let_a_changed_batch_through(make_consumer):
    batch = bytearray(simple_batch(0, 1))
    batch[17] ^= 1
    consumer = make_consumer({A0: FetchLog(bytes(batch))}, "a", check_crcs=False)
    assert read(consumer) == {A0: [0]}


def test_clients_without_a_name_are_numbered(make_consumer):
    names = {make_consumer({}).config["client_id"] for _ in range(2)}
    assert len(names) == 2
    assert all(name.startswith("kafkacore-consumer-") for name in names)
    assert make_consumer({}, client_id="mine").config["client_id"] == "mine"


# ---- Invalid arguments of methods -------------------------------------------------------------------------
def test_arguments_by_position_and_by_name_mean_the_same(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 5))})
    consumer.assign(partitions=[A0])
    assert [each.offset for each in consumer.poll(1000, 2, False)[A0]] == [0, 1]
    again = consumer.poll(timeout_ms=1000, max_records=2, update_offsets=True)
    assert [each.offset for each in again[A0]] == [0, 1]
    consumer.seek(partition=A0, offset=4)
    assert consumer.position(partition=A0, timeout_ms=100) == 4
    assert consumer.beginning_offsets([A0], 1000) == consumer.beginning_offsets(partitions=[A0]) == {A0: 0}
    assert set(consumer.offsets_for_times({A0: 1}, timeout_ms=1000)) == {A0}
    consumer.unsubscribe()
    consumer.subscribe(("a",), None, None)
    assert consumer.subscription() == {"a"}


@pytest.mark.parametrize("timeout_ms", ["1", None, True])
def test_poll_takes_only_a_number_as_its_time(make_consumer, timeout_ms):
    with pytest.raises(TypeError, match="timeout_ms"):
        make_consumer({}).poll(timeout_ms)


@pytest.mark.parametrize("timeout_ms", [-1, -0.5, math.nan])
def test_poll_takes_no_negative_time(make_consumer, timeout_ms):
    with pytest.raises(ValueError, match="timeout_ms"):
        make_consumer({}).poll(timeout_ms)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda consumer: consumer.seek(A0, 1), ValueError),
        (lambda consumer: consumer.seek_to_beginning(A0), ValueError),
        (lambda consumer: consumer.seek_to_end(), ValueError),
        (lambda consumer: consumer.position(A0), IllegalStateError),
        (lambda consumer: consumer.highwater(A0), IllegalStateError),
        (lambda consumer: consumer.pause(A0), IllegalStateError),
        (lambda consumer: consumer.resume(A0), IllegalStateError),
        (lambda consumer: consumer.seek(("a", 0), 1), TypeError),
        (lambda consumer: consumer.seek_to_beginning("a"), TypeError),
        (lambda consumer: consumer.position("a"), TypeError),
        (lambda consumer: consumer.highwater("a"), TypeError),
        (lambda consumer: consumer.pause(["a"]), TypeError),
        (lambda consumer: consumer.assign(["a"]), TypeError),
        (lambda consumer: consumer.offsets_for_times({A0: -5}), ValueError),
        (lambda consumer: consumer.end_offsets(["a"]), TypeError),
        (lambda consumer: consumer.subscribe(), ValueError),
        (lambda consumer: consumer.subscribe("a"), TypeError),
        (lambda consumer: consumer.subscribe(["a"], pattern="b"), ValueError),
        (lambda consumer: consumer.subscribe(["a b"]), ValueError),
        (lambda consumer: consumer.subscribe(["a"], listener=print), TypeError),
    ],
)
def test_impossible_calls_raise_as_kafka_pythons_do(make_consumer, call, error):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 1))})
    with pytest.raises(error):
        call(consumer)
    assert consumer.assignment() == set()


def test_nothing_is_assigned_paused_or_subscribed_at_first(make_consumer):
    consumer = make_consumer({A0: FetchLog()})
    assert consumer.assignment() == consumer.paused() == set()
    assert consumer.subscription() is None
    assert not consumer.bootstrap_connected()
    consumer.bootstrap(timeout_ms=1000)
    consumer.topics()
    assert consumer.bootstrap_connected()


def test_tables_that_are_given_out_are_the_callers_own(make_consumer):
    consumer = make_consumer({A0: FetchLog()}, "a")
    read(consumer)
    for given in (consumer.assignment(), consumer.subscription(), consumer.paused(), consumer.topics()):
        given.clear()
    assert consumer.assignment() == {A0}
    assert consumer.subscription() == {"a"}


def test_bootstrap_that_nobody_answers_ends_after_bootstrap_timeout_ms(make_consumer, clock):
    consumer = make_consumer({A0: FetchLog()}, api_version=(4, 0), bootstrap_timeout_ms=700)
    consumer.model.down.add(0)
    for limit, timeout in (("bootstrap_timeout_ms", ()), ("timeout_ms", (700,))):
        began_ms = clock.monotonic_ms()
        with pytest.raises(kafkacore.errors.NoBrokersAvailable, match=f"within {limit}=700:"):
            consumer.bootstrap(*timeout)
        assert 700 <= clock.monotonic_ms() - began_ms < 1400


def test_constructor_waits_for_a_broker_and_raises_without_one(make_consumer, clock):
    consumer = make_consumer({A0: FetchLog()}, "a", bootstrap_timeout_ms=700)
    assert not consumer.known.fetch().is_bootstrap
    began_ms = clock.monotonic_ms()
    with pytest.raises(kafkacore.errors.NoBrokersAvailable, match="within bootstrap_timeout_ms=700:"):
        make_consumer({A0: FetchLog()}, "a", down=[0], group_id="g", bootstrap_timeout_ms=700)
    assert 700 <= clock.monotonic_ms() - began_ms < 1400


@pytest.mark.parametrize("not_waiting", [{"api_version": (4, 0)}, {"bootstrap_timeout_ms": 0}])
def test_constructor_that_does_not_wait_contacts_no_broker(monkeypatch, not_waiting):
    def refuse(*arguments, **more):
        raise AssertionError("the constructor must not contact a broker")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    servers = "no.such.host.invalid:1"
    consumer = KafkaConsumer("topic", bootstrap_servers=servers, clock=VirtualClock(), **not_waiting)
    consumer.close(timeout_ms=0)


# ---- Records -----------------------------------------------------------------------------------------------
def test_records_are_copied_and_made_like_the_named_tuple(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 1))}, "a")
    (record,) = next(iter(consumer.poll(1000).values()))
    theirs = kafka.consumer.fetcher.ConsumerRecord(*record)
    changed = record._replace(value=b"other", offset=7)
    assert (changed.value, changed.offset, changed.key) == (b"other", 7, record.key)
    assert record.offset == 0
    assert record._replace() == record == ConsumerRecord._make(record) == ConsumerRecord._make(iter(record))
    assert tuple(changed) == tuple(theirs._replace(value=b"other", offset=7))
    with pytest.raises(ValueError, match="no field 'valu'"):
        record._replace(valu=1)
    with pytest.raises(TypeError, match="13 fields, not 2"):
        ConsumerRecord._make([1, 2])
