"""``kafkacore consume --group`` runs members of a group at the command line."""

import itertools
import json
import signal
import subprocess
import sys

import pytest
from eventually import BUDGET_S
from model.new_topics import create_topics

from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.admin import NewTopic
from kafkacore.cli.main import main

VALUES = [str(number) for number in range(30)]


def filled_topic(bootstrap, name):
    create_topics(bootstrap, NewTopic(name, num_partitions=3))
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for partition, value in zip(itertools.cycle(range(3)), VALUES, strict=False):
            producer.send(name, value.encode(), partition=partition)
    return name


def committed(bootstrap, group, topic):
    with KafkaConsumer(bootstrap_servers=bootstrap, group_id=group) as consumer:
        return [consumer.committed(TopicPartition(topic, number)) or 0 for number in range(3)]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_member_goes_on_where_the_group_was(apache_kafka, capfdbinary, protocol):
    bootstrap = apache_kafka.bootstrap_servers
    topic = filled_topic(bootstrap, f"consume-command-{protocol}")
    command = ["consume", topic, "--group", topic, "--from-beginning", "--bootstrap", bootstrap]
    command += ["--group-protocol", protocol]
    seen = []
    for count in (10, 20):
        assert main([*command, "--max-records", str(count)]) == 0
        lines = capfdbinary.readouterr().out.decode().split()
        assert len(lines) == count
        seen += lines
        assert sum(committed(bootstrap, topic, topic)) == len(seen)
    assert sorted(seen, key=int) == VALUES


def test_interrupt_commits_what_was_printed_and_nothing_else(apache_kafka):
    bootstrap = apache_kafka.bootstrap_servers
    topic = filled_topic(bootstrap, "consume-command-interrupted")
    # fmt: off
    with subprocess.Popen(
        [sys.executable, "-m", "kafkacore.cli.main", "consume", topic, "--group", topic, "--from-beginning",
         "--json", "--bootstrap", bootstrap],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:
        # fmt: on
        assert process.stdout is not None
        printed = [json.loads(process.stdout.readline()) for _ in VALUES]
        # When this record is printed, the poll that returned the others is over.
        with KafkaProducer(bootstrap_servers=bootstrap) as producer:
            producer.send(topic, b"last", partition=0)
        last = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=BUDGET_S)
    assert process.returncode == 130, said
    assert {record["value"] for record in printed} == set(VALUES)
    assert last["value"] == "last"
    assert committed(bootstrap, topic, topic) in ([10, 10, 10], [11, 10, 10])
