"""However a member of a group ends, it leaves no threads or descriptors, and leaves its group."""

from __future__ import annotations

import gc
import operator
import os
import random
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest
from eventually import BUDGET_S, LONG_SESSION_MS, eventually
from model.dose import dose, new_seed

from kafkacore import KafkaConsumer, KafkaProducer
from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import IllegalStateError

#: Program of a member that runs ``body``.
MEMBER = """
import sys
from kafkacore import KafkaConsumer
consumer = KafkaConsumer(sys.argv[2], bootstrap_servers=sys.argv[1], group_id=sys.argv[3],
                         auto_offset_reset="earliest", session_timeout_ms={session_ms})
{body}
"""


@pytest.fixture(scope="module")
def topic(apache_kafka) -> str:
    name = "member-lives"
    with KafkaAdminClient(bootstrap_servers=apache_kafka.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(name, num_partitions=2)])
    with KafkaProducer(bootstrap_servers=apache_kafka.bootstrap_servers) as producer:
        for number in range(100):
            producer.send(name, b"%d" % number, partition=number % 2)
    return name


def member(apache_kafka, topic: str, group: str, **settings: object) -> KafkaConsumer:
    return KafkaConsumer(
        topic,
        bootstrap_servers=apache_kafka.bootstrap_servers,
        group_id=group,
        auto_offset_reset="earliest",
        **settings,
    )


def read(consumer: KafkaConsumer, count: int) -> int:
    """Poll until at least ``count`` records have arrived, and return their number."""
    got: list[int] = []

    def poll() -> None:
        got.extend(map(len, consumer.poll(timeout_ms=200).values()))

    eventually(lambda: sum(got) >= count, step=poll)
    return sum(got)


def held() -> tuple[int, int, int]:
    """Return the number of descriptors, Python threads and OS threads, after a garbage collection."""
    gc.collect()
    return (
        len(os.listdir("/proc/self/fd")),
        threading.active_count(),
        len(os.listdir("/proc/self/task")),
    )


def live(apache_kafka, topic: str, number: int) -> None:
    """Run one member; every second one ends without a close."""
    # Each member needs its own group: one that does not send LeaveGroup keeps its partitions for a session.
    consumer = member(apache_kafka, topic, f"lives-{number}")
    assert read(consumer, 1) > 0
    if number % 2:
        consumer.close()
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del consumer
        gc.collect()
    assert [str(each.message)[:8] for each in caught if each.category is ResourceWarning] == ["unclosed"]


def test_lives_leave_neither_descriptors_nor_threads(apache_kafka, topic):
    lives = dose(10, 100)
    live(apache_kafka, topic, lives + 1)
    before = held()
    for number in range(lives):
        live(apache_kafka, topic, number)
    # The thread of a member that was not closed exits by itself some time later.
    eventually(lambda: not any(map(operator.gt, held(), before)), lambda: (held(), before))


def test_interpreter_ends_with_a_member_that_nobody_closed(apache_kafka, topic):
    body = "while not consumer.poll(200): pass\nprint('read')"
    ended = run_member(apache_kafka, topic, "exits", body)
    assert (ended.returncode, ended.stdout) == (0, "read\n"), ended.stderr
    assert "Traceback" not in ended.stderr


def run_member(apache_kafka, topic: str, group: str, body: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", MEMBER.format(body=body, session_ms=LONG_SESSION_MS)]
    return subprocess.run(
        [*command, apache_kafka.bootstrap_servers, topic, group],
        capture_output=True, text=True, timeout=2 * BUDGET_S, check=False,
    )  # fmt: skip


def test_forked_child_of_a_member_is_refused_and_the_parent_stays_one(apache_kafka, topic):
    with member(apache_kafka, topic, "forks", heartbeat_interval_ms=200) as consumer:
        assert read(consumer, 100) == 100
        generation = consumer.group_metadata().generation_id
        child = os.fork()
        if child == 0:
            status = 1
            try:
                consumer.poll(0)
            except IllegalStateError:
                status = 0
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        consumer.commit()
        beats = heartbeats_of(consumer)
        eventually(lambda: heartbeats_of(consumer) >= beats + 3, step=lambda: consumer.poll(100))
        assert consumer.group_metadata().generation_id == generation


def heartbeats_of(consumer: KafkaConsumer) -> float:
    return consumer.metrics()["consumer-coordinator-metrics"]["heartbeat-total"]


@pytest.mark.kafka("KafkaConsumerTest.testCloseInterrupt")
def test_interrupted_member_closes_at_any_moment(apache_kafka, topic, tmp_path):
    """On Ctrl-C at any moment, a member leaves: the next one need not wait for its session."""
    body = (
        "print('begun', flush=True)\n"
        "try:\n"
        "    while True:\n"
        "        consumer.poll(100)\n"
        "        consumer.commit_async()\n"
        "finally:\n"
        "    consumer.close()\n"
    )
    moments = random.Random(new_seed())
    for _ in range(dose(6, 60)):
        interrupt(apache_kafka, topic, body, moments.random() * 500, tmp_path / "errors")
    with member(apache_kafka, topic, "interrupted") as consumer:
        eventually(lambda: len(consumer.assignment()) == 2, step=lambda: consumer.poll(100))


def interrupt(apache_kafka, topic: str, body: str, after_ms: float, errors: Path) -> None:
    """Run a member for ``after_ms``, then stop it with SIGINT."""
    # fmt: off
    with errors.open("w") as written, subprocess.Popen(
        [sys.executable, "-c", MEMBER.format(body=body, session_ms=LONG_SESSION_MS),
         apache_kafka.bootstrap_servers, topic, "interrupted"],
        stdout=subprocess.PIPE, stderr=written, text=True,
    ) as process:
        # fmt: on
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        SYSTEM_CLOCK.sleep_ms(after_ms)
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(timeout=BUDGET_S) == -signal.SIGINT
        finally:
            process.kill()
    assert errors.read_text().rstrip().endswith("KeyboardInterrupt")
