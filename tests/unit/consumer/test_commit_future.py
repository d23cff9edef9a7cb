"""CommitFuture has the attributes of kafka-python's futures."""

import kafka.future
import pytest

from kafkacore.consumer._request_future import RequestFuture
from kafkacore.consumer.commit_future import CommitFuture
from kafkacore.errors import CommitFailedError, RetriableCommitFailedError
from kafkacore.future import Future


@pytest.fixture
def outcome():
    return RequestFuture()


@pytest.fixture
def future(outcome):
    return CommitFuture(outcome)


def attributes(future):
    return (future.is_done, future.succeeded(), future.failed(), future.value, future.exception)


def test_attributes_follow_the_outcome(future, outcome):
    assert attributes(future) == (False, False, False, None, None)
    outcome.complete(None)
    assert attributes(future) == (True, True, False, None, None)
    assert repr(future) == "<CommitFuture committed>"


@pytest.mark.parametrize("error", [CommitFailedError("left"), RetriableCommitFailedError("moved")])
def test_failure_is_the_exception(future, outcome, error):
    outcome.fail(error)
    assert attributes(future) == (True, False, True, None, error)
    assert future.retriable() is isinstance(error, RetriableCommitFailedError)


@pytest.mark.parametrize("error", [None, CommitFailedError("left")])
@pytest.mark.parametrize("is_late", [False, True])
def test_callbacks_are_called_as_by_kafka_python(future, outcome, error, is_late):
    theirs, calls = kafka.future.Future(), {"ours": [], "theirs": []}

    def complete():
        if error is None:
            outcome.complete(None)
            theirs.success(None)
        else:
            outcome.fail(error)
            theirs.failure(error)

    if is_late:
        complete()
    for name, each in (("ours", future), ("theirs", theirs)):
        record = calls[name].append
        assert each.add_callback(lambda *a, record=record, **k: record(("call", a, k)), 1, by=2) is each
        assert each.add_errback(lambda *a, record=record, **k: record(("error", a, k)), 3, by=4) is each
        assert each.add_both(lambda *a, record=record: record(("both", a))) is each
    if not is_late:
        complete()
    assert len(calls["ours"]) == 2
    assert calls["ours"] == calls["theirs"]


@pytest.mark.parametrize("error", [None, CommitFailedError("left")])
def test_chained_future_gets_the_outcome(future, outcome, error):
    target = Future()
    assert future.chain(target) is future
    if error is None:
        outcome.complete(None)
    else:
        outcome.fail(error)
    assert (target.is_done, target.exception) == (True, error)


def test_future_of_a_commit_is_a_future(future):
    public = {name for name in dir(kafka.future.Future) if not name.startswith("_")}
    assert isinstance(future, Future)
    assert public - set(dir(future)) == {"success", "failure", "error_on_callbacks"}


def test_exception_of_a_callback_is_logged_and_the_others_run(future, outcome, caplog):
    called = []
    future.add_callback(lambda _: 1 / 0)
    future.add_callback(called.append)
    outcome.complete(None)
    assert called == [None]
    (record,) = caplog.records
    assert record.exc_info[0] is ZeroDivisionError


def test_callback_that_cannot_be_called_is_refused(future):
    with pytest.raises(TypeError, match="must be callable, not 'f'"):
        future.add_callback("f")
