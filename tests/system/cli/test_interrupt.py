"""SIGINT, SIGTERM and SIGKILL at every stage: no process is left, and the next run completes."""

import json
import random
import signal
from pathlib import Path

import pytest
from model.dose import dose, new_seed

from kafkacore.admin import KafkaAdminClient
from kafkacore.testing import EmbeddedBroker

RECORDS = 3_000
#: A run that was interrupted too late has written the records already.
PRODUCE = ("Produce ...", "producing none")
PRODUCED = ("Produce: done", "producing none")
#: Output after which the demo gets a signal, the signal, and whether the whole process group gets it.
STAGES = [
    (("The broker stores its data in",), signal.SIGINT, True),
    (("Start the broker ...",), signal.SIGTERM, False),
    (PRODUCE, signal.SIGINT, True),
    (PRODUCED, signal.SIGINT, False),
    (("Start Spark ...",), signal.SIGKILL, False),
    (("Start Spark ...",), signal.SIGINT, True),
    (("Spark to Parquet ...",), signal.SIGINT, True),
]


@pytest.mark.timeout(dose(240, 600))
def test_demo_interrupted_at_any_stage_leaves_nothing_and_completes_afterwards(
    start, assert_nothing_left, tmp_path
):
    demo = ("demo", "--dir", str(tmp_path), "--records", str(RECORDS))
    # In this order, because a later stage leaves records, and the next run does not produce any then.
    drawn = sorted(random.Random(new_seed()).sample(range(len(STAGES)), dose(3, len(STAGES))))
    for says, number, group in map(STAGES.__getitem__, drawn):
        for _ in range(3):
            command = start(*demo)
            command.wait_until_it_says(*says)
            command.interrupt(number, group)
            status = command.end()
            # Status 0 means that the command was done before the signal arrived. Try again.
            if status != 0:
                break
        if number == signal.SIGKILL:
            assert status == -signal.SIGKILL
        else:
            assert (status, command.lines[-1]) == (130, "kafkacore: interrupted"), command.lines
        assert not [line for line in command.lines if "Traceback" in line or "Error" in line], command.lines
        assert_nothing_left(tmp_path)

    command = start(*demo, "--json")
    summary = json.loads(command.process.stdout.read())
    assert command.end() == 0, command.lines
    assert summary["differences"] == []
    assert_nothing_left(tmp_path)


@pytest.mark.timeout(240)
def test_endless_pipeline_ends_with_ctrl_c(start, assert_nothing_left, our_broker, make_topic, tmp_path):
    topic = make_topic([b'{"id": 1}', b'{"id": 2}'])
    # fmt: off
    command = start(
        "pipeline", "--bootstrap", our_broker.bootstrap_servers, "--topic", topic, "--schema", "id INT",
        "--path", str(tmp_path / "sink"), "--checkpoint", str(tmp_path / "checkpoint"),
        "--trigger", "1 second",
    )
    # fmt: on
    command.wait_until_it_says(f"{topic} to sink: 2 records")
    command.interrupt()
    shown = command.process.stdout.read()
    assert command.end() == 130
    assert command.lines[-3:-1] == [
        "Finishing the batch in progress. Press Ctrl-C again to stop at once.",
        next(line for line in command.lines if line.startswith(f"{topic} to sink: done, 2 records in ")),
    ]
    assert command.lines[-1] == "kafkacore: interrupted"
    assert shown.startswith(b"2 records in ")
    assert not [line for line in command.lines if "Traceback" in line]
    assert_nothing_left(tmp_path)


def test_consume_ends_with_ctrl_c(start, our_broker, make_topic):
    topic = make_topic([b"one"])
    command = start("consume", topic, "--bootstrap", our_broker.bootstrap_servers, "--from-beginning")
    assert command.process.stdout.readline() == b"one\n"
    command.interrupt()
    assert command.end() == 130
    assert command.lines == ["kafkacore: interrupted"]


@pytest.mark.timeout(120)
def test_bench_ends_with_ctrl_c_and_leaves_neither_process_nor_topic(start, assert_nothing_left, our_broker):
    # Only the workers have the address in their command lines.
    address = our_broker.bootstrap_servers
    for mode in ("produce", "consume"):
        # fmt: off
        command = start(
            "bench", mode, "--bootstrap", address, "--peers", "none", "--records", "50000", "--rounds", "40",
        )
        # fmt: on
        command.wait_until_it_says("of 40 runs")
        command.interrupt()
        assert command.end() == 130
        assert command.lines[-1] == "kafkacore: interrupted"
        assert not [line for line in command.lines if "Traceback" in line], command.lines
    assert_nothing_left(Path(address))
    with KafkaAdminClient(bootstrap_servers=address) as admin:
        assert not [name for name in admin.list_topics() if name.startswith("kafkacore-bench")]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_broker_that_is_asked_to_stop_has_done_its_work(start, tmp_path, number):
    command = start("broker", "--data-dir", str(tmp_path), "--listen", "127.0.0.1:0")
    assert command.process.stdout.readline().startswith(b"Listening on 127.0.0.1:")
    command.interrupt(number)
    assert command.end() == 0
    assert [line for line in command.lines if " INFO " not in line] == []
    with EmbeddedBroker(tmp_path) as broker:
        assert broker.port
