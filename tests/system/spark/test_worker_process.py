"""Setup that runs once in each worker process."""

import gc
import socket

import pytest

from kafkacore.spark.worker import process as worker_process

#: Code that calls a worker as PySpark's daemon does.
DAEMON = """
def worker(sock, authenticated):
    return main()
"""


@pytest.fixture
def new_process(monkeypatch):
    monkeypatch.setattr(worker_process, "_begun", 0)
    monkeypatch.setattr(gc, "callbacks", callbacks := [])
    gc.unfreeze()  # earlier tests that read directly have also run as tasks
    yield callbacks
    gc.unfreeze()


@pytest.fixture
def tcp():
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        theirs, _ = server.accept()
        with ours, theirs:
            yield ours


def in_worker(sock, main):
    """Call ``main()`` in a worker that has this socket, and return its result."""
    names = {"main": main}
    exec(compile(DAEMON, "/somewhere/pyspark/daemon.py", "exec"), names)
    return names["worker"](sock, True)


def test_what_is_loaded_is_left_out_of_collections_from_the_second_task_on(new_process):
    worker_process.begin_task()
    assert gc.get_freeze_count() == 0
    worker_process.begin_task()
    assert gc.get_freeze_count() > 10_000


def test_what_comes_later_is_collected(new_process):
    worker_process.begin_task()
    worker_process.begin_task()
    frozen = gc.get_freeze_count()
    kept = [[] for _ in range(1000)]
    worker_process.begin_task()
    assert gc.get_freeze_count() <= frozen
    assert any(one is kept for one in gc.get_objects())


def test_the_socket_of_a_worker_is_found(tcp):
    assert in_worker(tcp, worker_process.socket_to_spark) is tcp


def test_a_unix_socket_needs_nothing(new_process):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert in_worker(ours, worker_process.socket_to_spark) is None
        in_worker(ours, worker_process.begin_task)
    assert new_process == []


def test_outside_a_worker_there_is_no_socket(new_process):
    assert worker_process.socket_to_spark() is None
    worker_process.begin_task()
    assert new_process == []


def test_each_whole_collection_asks_for_acknowledgements_at_once(new_process, tcp):
    in_worker(tcp, worker_process.begin_task)
    (callback,) = new_process
    tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
    callback("stop", {"generation": 0})
    callback("start", {"generation": 2})
    assert tcp.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK) == 0
    callback("stop", {"generation": 2})
    assert tcp.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK) == 1


def test_a_closed_socket_is_let_alone(new_process, tcp):
    in_worker(tcp, worker_process.begin_task)
    tcp.close()
    new_process[0]("stop", {"generation": 2})


def test_sparks_own_workers_are_known(spark):
    def look(batches):
        import pyarrow

        from kafkacore.spark.worker import process as worker_process

        yield from ()
        found = worker_process.socket_to_spark() is not None
        yield pyarrow.record_batch({"found": pyarrow.array([found])})

    assert {row.found for row in spark.range(1).mapInArrow(look, "found boolean").collect()} == {True}
