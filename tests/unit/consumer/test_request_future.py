"""RequestFuture: it completes once and calls each listener once."""

import threading

import pytest

from kafkacore.consumer._request_future import CallbackInterruptedError, RequestFuture
from kafkacore.errors import IllegalStateError, KafkaTimeoutError


class Listener:
    def __init__(self, log, name=""):
        self.log, self.name = log, name

    def on_success(self, value):
        self.log.append((self.name, value))

    def on_failure(self, error):
        self.log.append((self.name, error))


@pytest.mark.kafka(
    "RequestFutureTest.invokeCompleteAfterAlreadyComplete",
    "RequestFutureTest.invokeRaiseAfterAlreadyCompleted",
)
@pytest.mark.behaviour("RequestFuture", "a future completes once")
def test_succeeded_future_refuses_to_be_completed_again():
    future = RequestFuture.success(1)
    with pytest.raises(RuntimeError):
        future.complete(2)
    with pytest.raises(RuntimeError):
        future.fail(ValueError())
    assert future.value() == 1


@pytest.mark.kafka(
    "RequestFutureTest.invokeCompleteAfterAlreadyFailed",
    "RequestFutureTest.invokeRaiseAfterAlreadyFailed",
)
@pytest.mark.behaviour("RequestFuture", "a future completes once")
def test_failed_future_refuses_to_be_completed_again():
    error = ValueError()
    future = RequestFuture.failure(error)
    with pytest.raises(RuntimeError):
        future.fail(KeyError())
    with pytest.raises(RuntimeError):
        future.complete(1)
    assert future.exception() is error


@pytest.mark.kafka(
    "RequestFutureTest.testBasicCompletion",
    "RequestFutureTest.invokeValueAfterFailure",
)
@pytest.mark.behaviour("RequestFuture", "no value before success, no error before failure")
def test_value_before_success_is_an_error():
    with pytest.raises(RuntimeError):
        RequestFuture().value()
    with pytest.raises(RuntimeError):
        RequestFuture.failure(ValueError()).value()


@pytest.mark.kafka(
    "RequestFutureTest.testBasicFailure",
    "RequestFutureTest.invokeExceptionAfterSuccess",
)
@pytest.mark.behaviour("RequestFuture", "no value before success, no error before failure")
def test_exception_before_failure_is_an_error():
    with pytest.raises(RuntimeError):
        RequestFuture().exception()
    with pytest.raises(RuntimeError):
        RequestFuture.success(1).exception()


@pytest.mark.kafka(
    "FetcherTest.testFetchCompletedBeforeHandlerAdded",
    "RequestFutureTest.listenerInvokedIfAddedBeforeFutureCompletion",
    "RequestFutureTest.listenerInvokedIfAddedBeforeFutureFailure",
    "RequestFutureTest.listenerInvokedIfAddedAfterFutureCompletion",
    "RequestFutureTest.listenerInvokedIfAddedAfterFutureFailure",
    "RequestFutureTest.listenersInvokedIfAddedBeforeAndAfterFailure",
    "RequestFutureTest.listenersInvokedIfAddedBeforeAndAfterCompletion",
)
@pytest.mark.behaviour("RequestFuture", "listeners are called once and in order, whenever they were added")
@pytest.mark.parametrize("complete", [lambda f: f.complete(7), lambda f: f.fail(KeyError("x"))])
def test_listeners_added_before_and_after_fire_once_in_order(complete):
    log = []
    future = RequestFuture()
    future.add_listener(Listener(log, "first"))
    future.add_listener(Listener(log, "second"))
    complete(future)
    future.add_listener(Listener(log, "late"))
    assert [name for name, _ in log] == ["first", "second", "late"]


@pytest.mark.kafka("RequestFutureTest.testVoidFuture")
@pytest.mark.behaviour("RequestFuture", "a result may be None")
def test_void_result_is_allowed():
    future = RequestFuture.success(None)
    assert future.succeeded()
    assert future.value() is None


@pytest.mark.kafka("RequestFutureTest.testRuntimeExceptionInComplete")
@pytest.mark.behaviour("RequestFuture", "an exception is rejected as a value")
def test_exception_object_as_value_is_refused():
    future = RequestFuture()
    with pytest.raises(TypeError):
        future.complete(ValueError())
    assert not future.is_done()


@pytest.mark.kafka("RequestFutureTest.testComposeSuccessCase")
@pytest.mark.behaviour(
    "RequestFuture", "compose passes a success to the adapter, and a failure to the composed future"
)
def test_compose_passes_success_on():
    future = RequestFuture()
    composed = future.compose(lambda value, adapted: adapted.complete(str(value)))
    future.complete(5)
    assert composed.value() == "5"


@pytest.mark.kafka("RequestFutureTest.testComposeFailureCase")
@pytest.mark.behaviour(
    "RequestFuture", "compose passes a success to the adapter, and a failure to the composed future"
)
def test_compose_passes_failure_through_unmapped():
    future, error = RequestFuture(), KafkaTimeoutError("late")
    composed = future.compose(lambda value, adapted: adapted.complete(str(value)))
    future.fail(error)
    assert composed.exception() is error
    assert composed.is_retriable()


@pytest.mark.behaviour(
    "RequestFuture", "compose passes a success to the adapter, and a failure to the composed future"
)
def test_error_in_an_adapter_fails_the_composed_future():
    future = RequestFuture()

    def adapter(value, adapted):
        raise IllegalStateError("bad answer")

    composed = future.compose(adapter)
    future.complete(5)
    assert isinstance(composed.exception(), IllegalStateError)
    assert not composed.is_retriable()


def test_chained_future_completes_alike():
    source, target = RequestFuture(), RequestFuture()
    source.chain(target)
    source.complete(3)
    assert target.value() == 3


@pytest.mark.behaviour("RequestFuture", "a future completes once")
def test_concurrent_completion_lets_exactly_one_win():
    future, outcomes = RequestFuture(), []
    log = []
    future.add_listener(Listener(log))
    barrier = threading.Barrier(4)

    def complete(value):
        barrier.wait()
        try:
            future.complete(value)
            outcomes.append(value)
        except RuntimeError:
            pass

    threads = [threading.Thread(target=complete, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 1
    assert log == [("", outcomes[0])]


class TestInterrupted:
    """Ctrl-C while a listener runs."""

    @staticmethod
    def interrupt(*args):
        raise KeyboardInterrupt

    def test_others_still_hear_and_the_interrupt_goes_on(self):
        future, heard = RequestFuture(), []
        future.add_callbacks(self.interrupt, heard.append)
        future.add_callbacks(heard.append, heard.append)
        with pytest.raises(KeyboardInterrupt):
            future.complete(1)
        assert isinstance(heard[0], CallbackInterruptedError)
        assert heard[1:] == [1]

    def test_what_was_to_come_of_it_fails_as_what_may_be_tried_again(self):
        future = RequestFuture()
        composed = future.compose(self.interrupt)
        last = RequestFuture()
        composed.chain(last)
        with pytest.raises(KeyboardInterrupt):
            future.complete(1)
        assert last.failed()
        assert last.is_retriable()

    def test_what_has_come_of_it_already_stays(self):
        future, heard = RequestFuture(), []

        def adapt(value, adapted):
            adapted.complete(value + 1)
            raise KeyboardInterrupt

        composed = future.compose(adapt)
        composed.add_callbacks(heard.append, heard.append)
        with pytest.raises(KeyboardInterrupt):
            future.complete(1)
        assert heard == [2]

    def test_who_has_not_been_called_is_called_later(self):
        future, heard = RequestFuture(), []

        def fail(value):
            raise ValueError(value)

        future.add_callbacks(fail, heard.append)
        future.add_callbacks(heard.append, heard.append)
        with pytest.raises(ValueError, match="1"):
            future.complete(1)
        future.fire_rest()
        assert heard == [1]
