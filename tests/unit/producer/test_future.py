"""FutureRecordMetadata: each record of a batch gets one outcome."""

from __future__ import annotations

import gc
import logging
import threading
import weakref

import kafka.future
import pytest
from eventually import BUDGET_S
from model.blocking_clock import BlockingClock

from kafkacore.errors import KafkaTimeoutError, NotLeaderForPartitionError, RecordListTooLargeError
from kafkacore.future import Future
from kafkacore.producer._future import FutureRecordMetadata, ProduceResult
from kafkacore.structs import TopicPartition
from kafkacore.testing import VirtualClock

TP = TopicPartition("t", 3)


def test_future_of_an_open_batch_knows_nothing() -> None:
    future = FutureRecordMetadata(ProduceResult(TP))
    assert not future.is_done
    assert not future.succeeded()
    assert not future.failed()
    assert future.value is None
    assert future.exception is None
    assert not future.retriable()


def test_value_has_the_offset_of_the_record_and_its_sizes() -> None:
    result = ProduceResult(TP)
    future = FutureRecordMetadata(result, 2, 1234, 5, 6, 7)
    result.complete(base_offset=40)
    assert future.succeeded()
    assert future.get() == ("t", 3, TP, 42, 1234, None, 5, 6, 7)
    assert future.value == future.get()


def test_timestamp_is_the_brokers_where_the_broker_set_it() -> None:
    result = ProduceResult(TP)
    result.complete(base_offset=0, log_append_time_ms=999)
    assert FutureRecordMetadata(result, 0, 1234).get().timestamp == 999


def test_offset_is_unknown_where_the_broker_was_not_asked() -> None:
    result = ProduceResult(TP)
    result.complete()
    assert FutureRecordMetadata(result, 5).get().offset == -1


def test_failed_future_raises_its_error_every_time_with_a_fresh_traceback() -> None:
    result = ProduceResult(TP)
    future = FutureRecordMetadata(result)
    error = NotLeaderForPartitionError()
    result.complete(error=error)
    assert future.failed()
    assert future.retriable()
    lengths = []
    for _ in range(3):
        with pytest.raises(NotLeaderForPartitionError) as raised:
            future.get(timeout=0)
        lengths.append(len(raised.traceback))
    assert future.exception is error
    assert len(set(lengths)) == 1


def test_a_records_own_error_reaches_its_own_future() -> None:
    result = ProduceResult(TP)
    futures = [FutureRecordMetadata(result, index) for index in range(3)]
    others, own = RecordListTooLargeError("others"), RecordListTooLargeError("own")
    result.complete(error=others, record_errors={1: own})
    assert [future.exception for future in futures] == [others, own, others]


def test_get_gives_up_after_its_timeout() -> None:
    clock = VirtualClock()
    started_ms = clock.monotonic_ms()
    with pytest.raises(KafkaTimeoutError, match=r"1\.5 seconds"):
        FutureRecordMetadata(ProduceResult(TP, clock)).get(timeout=1.5)
    assert clock.monotonic_ms() == started_ms + 1500


def test_get_returns_when_another_thread_completes_the_batch() -> None:
    result = ProduceResult(TP, BlockingClock())
    future = FutureRecordMetadata(result, 1)
    got: list[int] = []
    waiter = threading.Thread(target=lambda: got.append(future.get(timeout=BUDGET_S).offset))
    waiter.start()
    result.complete(base_offset=10)
    waiter.join(BUDGET_S)
    assert got == [11]


def test_callbacks_run_in_the_order_of_the_records() -> None:
    result = ProduceResult(TP)
    futures = [FutureRecordMetadata(result, index) for index in range(4)]
    seen: list[int] = []
    for future in reversed(futures):
        future.add_callback(lambda metadata: seen.append(metadata.offset))
    result.complete(base_offset=100)
    assert seen == [100, 101, 102, 103]


def test_callbacks_of_one_record_run_in_the_order_in_which_they_were_added_with_their_arguments() -> None:
    result = ProduceResult(TP)
    future = FutureRecordMetadata(result)
    seen: list[object] = []
    returned = future.add_callback(
        lambda word, metadata, extra: seen.append((word, metadata.offset, extra)), "a", extra=1
    )
    future.add_callback(lambda metadata: seen.append("b"))
    future.add_errback(lambda error: seen.append(error))
    result.complete(base_offset=7)
    assert returned is future
    assert seen == [("a", 7, 1), "b"]


def test_errback_gets_the_error_and_the_callback_nothing() -> None:
    result = ProduceResult(TP)
    future = FutureRecordMetadata(result)
    seen: list[object] = []
    future.add_callback(lambda metadata: seen.append("callback"))
    future.add_both(seen.append)
    error = NotLeaderForPartitionError()
    result.complete(error=error)
    assert seen == [error]


def test_callback_added_after_the_outcome_runs_at_once() -> None:
    result = ProduceResult(TP)
    result.complete(base_offset=1)
    seen: list[int] = []
    FutureRecordMetadata(result).add_callback(lambda metadata: seen.append(metadata.offset))
    assert seen == [1]


@pytest.mark.parametrize("future_class", [Future, kafka.future.Future])
@pytest.mark.parametrize("is_late", [False, True])
def test_chained_future_gets_the_outcome(future_class: type[Future], is_late: bool) -> None:
    result = ProduceResult(TP)
    error = NotLeaderForPartitionError()
    if is_late:
        result.complete(base_offset=7, record_errors={1: error})
    targets = [future_class(), future_class()]
    for index, target in enumerate(targets):
        future = FutureRecordMetadata(result, index)
        assert future.chain(target) is future
    if not is_late:
        result.complete(base_offset=7, record_errors={1: error})
    assert targets[0].value.offset == 7
    assert targets[0].exception is None
    assert targets[1].exception is error


def test_only_the_producer_completes_a_future() -> None:
    future = FutureRecordMetadata(ProduceResult(TP))
    public = {name for name in dir(kafka.future.Future) if not name.startswith("_")}
    assert public - set(dir(future)) == {"success", "failure", "error_on_callbacks"}


@pytest.mark.parametrize("raised", [ValueError("mine"), SystemExit(3)])
def test_raising_callback_is_logged_and_hurts_no_other(
    raised: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    result = ProduceResult(TP)
    seen: list[int] = []

    def broken(metadata: object) -> None:
        raise raised

    FutureRecordMetadata(result, 0).add_callback(broken)
    FutureRecordMetadata(result, 1).add_callback(lambda metadata: seen.append(metadata.offset))
    with caplog.at_level(logging.ERROR, "kafkacore.producer"):
        result.complete(base_offset=0)
    assert seen == [1]
    assert "broken" in caplog.text


def test_callback_must_be_callable() -> None:
    with pytest.raises(TypeError):
        FutureRecordMetadata(ProduceResult(TP)).add_callback("f")  # type: ignore[arg-type]  # the point


@pytest.mark.behaviour("ProducerBatch", "a batch has one outcome")
def test_a_batch_has_one_outcome() -> None:
    result = ProduceResult(TP)
    result.complete(base_offset=1)
    with pytest.raises(AssertionError):
        result.complete(base_offset=2)


def test_futures_of_a_divided_batch_follow_their_records() -> None:
    result, first, second, third = (ProduceResult(TP) for _ in range(4))
    futures = [FutureRecordMetadata(result, index) for index in range(5)]
    seen: list[int] = []
    for future in futures:
        future.add_callback(lambda metadata: seen.append(metadata.offset))
    result.divide([(0, first), (3, second)])
    assert not any(future.is_done for future in futures)
    second.divide([(0, third), (1, ProduceResult(TP))])
    first.complete(base_offset=50)
    third.complete(base_offset=90)
    assert [future.value.offset if future.value else None for future in futures] == [50, 51, 52, 90, None]
    assert seen == [50, 51, 52, 90]


def test_waiting_for_a_divided_batch_waits_for_all_its_parts() -> None:
    result = ProduceResult(TP, VirtualClock())
    parts = [ProduceResult(TP, VirtualClock()) for _ in range(2)]
    result.divide([(0, parts[0]), (1, parts[1])])
    parts[0].complete()
    assert not result.wait(100)
    parts[1].complete()
    assert result.wait(0)


def test_thread_that_waits_while_its_batch_is_divided_gets_its_own_outcome() -> None:
    result, first, second = (ProduceResult(TP, BlockingClock()) for _ in range(3))
    futures = [FutureRecordMetadata(result, index) for index in range(2)]
    got: list[int] = []
    waiter = threading.Thread(target=lambda: got.append(futures[1].get(timeout=BUDGET_S).offset))
    waiter.start()
    result.divide([(0, first), (1, second)])
    first.complete(base_offset=1)
    second.complete(base_offset=70)
    waiter.join(BUDGET_S)
    assert got == [70]


def test_callback_that_is_added_while_others_run_overtakes_none() -> None:
    result = ProduceResult(TP, BlockingClock())
    futures = [FutureRecordMetadata(result, index) for index in range(2)]
    is_running, may_go_on = threading.Event(), threading.Event()
    seen: list[tuple[str, int]] = []

    def note(name: str, _: object) -> None:
        seen.append((name, threading.get_ident()))
        is_running.set()
        assert may_go_on.wait(BUDGET_S)

    for index, future in enumerate(futures):
        future.add_callback(note, f"first {index}")
    network = threading.Thread(target=result.complete, args=(0,))
    network.start()
    assert is_running.wait(BUDGET_S)
    for index in (1, 0):
        futures[index].add_callback(note, f"second {index}")
    assert futures[0].is_done
    assert not result.wait(0)
    may_go_on.set()
    network.join()
    assert result.wait(0)
    assert seen == [(name, network.ident) for name in ("first 0", "first 1", "second 0", "second 1")]
    futures[0].add_callback(note, "third 0")
    assert seen[-1] == ("third 0", threading.get_ident())


def test_callback_that_refers_to_its_own_future_is_let_go_of_once_it_has_run() -> None:
    class Callback:
        future: FutureRecordMetadata

        def __call__(self, *_: object) -> None:
            """Do nothing: the callback only forms a reference cycle with its future."""

    result = ProduceResult(TP)
    callback = Callback()
    callback.future = FutureRecordMetadata(result, 0).add_both(callback)
    gone = weakref.ref(callback)
    result.complete(0)
    del callback, result
    gc.collect()
    assert gone() is None
