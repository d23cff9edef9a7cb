"""``kafkacore reassign`` and ``kafka-reassign-partitions.sh`` on two brokers of Apache Kafka."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eventually import eventually
from model.raw_line import Line
from peers.apache_kafka import ApacheKafka
from peers.java_tools import JavaTools, started_java_tools

from kafkacore import KafkaProducer
from kafkacore.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewTopic
from kafkacore.cli.admin.replication_throttle import (
    FOLLOWER_RATE,
    FOLLOWERS,
    LEADER_RATE,
    LEADERS,
    LOG_DIR_RATE,
)
from kafkacore.cli.main import main
from kafkacore.protocol.generated.metadata import MetadataRequest

TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
RACKS: dict[int, str | None] = {1: "west", 2: "east"}


class Cluster:
    """Two brokers in different racks, the first with two log directories, and the tools for them."""

    def __init__(
        self, brokers: list[str], log_dirs: list[str], tools: JavaTools, admin: KafkaAdminClient
    ) -> None:
        self.brokers = brokers
        self.servers = brokers[0]
        self.log_dirs = log_dirs
        self.tools = tools
        self.admin = admin

    def theirs(self, *arguments: object) -> str:
        printed = self.tools.run(TOOL, "--bootstrap-server", self.servers, *map(str, arguments))
        assert printed.status == 0, printed
        return printed.out

    def create(self, topic: str, *replicas: list[int]) -> None:
        """Create a topic, and wait until each broker knows it, because the tools may ask either one."""
        assignments = dict(enumerate(replicas))
        self.admin.create_topics([NewTopic(topic, replica_assignments=assignments)])
        asked = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=topic)])
        for broker in self.brokers:
            with Line(broker) as line:
                eventually(lambda line=line: line.ask(asked, 9).topics[0].error_code == 0)  # type: ignore[misc]

    def throttles(self, topic: str) -> dict[str, str]:
        """Return the limits of the brokers and of a topic, as Kafka stores them."""
        resources = [
            *(
                ConfigResource(
                    ConfigResourceType.BROKER, str(broker), [LEADER_RATE, FOLLOWER_RATE, LOG_DIR_RATE]
                )
                for broker in RACKS
            ),
            ConfigResource(ConfigResourceType.TOPIC, topic, [LEADERS, FOLLOWERS]),
        ]
        return {
            f"{kind} {config}" if kind == "topic" else f"{kind} {name} {config}": str(entry["value"])
            for kind, described in self.admin.describe_configs(resources, config_filter="all").items()
            for name, entries in described.items()
            for config, entry in entries.items()
            if entry["config_source"].startswith("DYNAMIC")
        }


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("reassign")
    log_dirs = [str(folder / "one" / name) for name in ("data", "other")]
    first = ApacheKafka(folder / "one", {"broker.rack": "west", "log.dirs": ",".join(log_dirs)})
    with (
        first,
        ApacheKafka(folder / "two", {"broker.rack": "east"}, joins=first) as second,
        started_java_tools() as tools,
        KafkaAdminClient(bootstrap_servers=first.bootstrap_servers) as admin,
    ):
        eventually(lambda: len(admin.describe_cluster()["brokers"]) == 2)
        yield Cluster([first.bootstrap_servers, second.bootstrap_servers], log_dirs, tools, admin)


@pytest.fixture
def ours(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return a function that runs our command, and returns its status and JSON."""

    def run(*words: object) -> tuple[int, Any]:
        capsys.readouterr()
        status = main(["reassign", *map(str, words), "--json", "--bootstrap", cluster.servers])
        shown = capsys.readouterr()
        assert shown.out, shown.err
        return status, json.loads(shown.out)

    return run


@pytest.fixture
def file(tmp_path: Path) -> Any:
    """Return a function that writes a file with the replicas of a topic."""

    def write(topic: str, **fields: Any) -> Path:
        path = tmp_path / f"{topic}.json"
        path.write_text(
            json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, **fields}]})
        )
        return path

    return write


def placed(proposal: Any) -> list[list[int]]:
    rows = sorted(proposal["partitions"], key=lambda row: row["partition"])
    assert [row["log_dirs"] for row in rows] == [["any"] * len(row["replicas"]) for row in rows]
    return [row["replicas"] for row in rows]


@pytest.mark.parametrize("rack_aware", [True, False])
@pytest.mark.parametrize("factor", [1, 2])
def test_both_propose_replicas_on_all_brokers(
    cluster: Cluster, ours: Any, tmp_path: Path, rack_aware: bool, factor: int
) -> None:
    topic = f"placed-{factor}-{rack_aware}"
    cluster.create(topic, *[[1, 2][:factor]] * 5)
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    option = [] if rack_aware else ["--disable-rack-aware"]
    out = cluster.theirs(
        "--generate", "--topics-to-move-json-file", topics, "--broker-list", "1,2", *option
    ).splitlines()
    theirs = json.loads(out[out.index("Proposed partition reassignment configuration") + 1])
    status, found = ours("generate", "--from-file", topics, "--brokers", "1,2", *option)
    assert status == 0
    for proposal in (placed(theirs), placed(found)):
        assert [len(set(replicas)) for replicas in proposal] == [factor] * 5
        assert {replicas[0] for replicas in proposal[:2]} == {1, 2}
    assert {replicas[0] for replicas in placed(found)[2:4]} == {1, 2}
    assert found.keys() == theirs.keys()


def test_each_removes_the_throttle_of_the_other(cluster: Cluster, ours: Any, file: Any) -> None:
    cluster.create("by-us", [1])
    cluster.create("by-them", [1])
    path = file("by-us", replicas=[2])
    assert ours("plan", path, "--execute", "--throttle", "1000000")[0] == 0

    def limits() -> dict[str, str]:
        found = cluster.throttles("by-us")
        return found if len(found) == 6 else {}

    # The next request may be answered by the other broker, which may not know the limits yet.
    expected = eventually(limits, lambda: cluster.throttles("by-us"))
    assert expected[f"topic {LEADERS}"] == "0:1"
    assert expected[f"topic {FOLLOWERS}"] == "0:2"
    verify = ("--verify", "--reassignment-json-file", path)
    eventually(lambda: "Reassignment of partition by-us-0 is completed" in cluster.theirs(*verify))
    eventually(lambda: cluster.throttles("by-us") == {})
    path = file("by-them", replicas=[2])
    cluster.theirs("--execute", "--reassignment-json-file", path, "--throttle", "1000000")
    eventually(lambda: cluster.throttles("by-them") == expected, lambda: cluster.throttles("by-them"))
    eventually(lambda: ours("verify", path, "--preserve-throttles")[0] == 0)
    assert cluster.throttles("by-them") == expected
    # The other broker may answer, which may not know the new replicas yet.
    eventually(lambda: ours("verify", path)[1][0]["status"] == "complete")
    eventually(lambda: cluster.throttles("by-them") == {}, lambda: cluster.throttles("by-them"))


def test_replica_moves_to_another_directory(cluster: Cluster, ours: Any, file: Any) -> None:
    cluster.create("folders", [1])
    with KafkaProducer(bootstrap_servers=cluster.servers) as producer:
        producer.send("folders", b"value").get(30)
    (described,) = cluster.admin.describe_log_dirs(["folders"], [1])
    (current,) = [each["log_dir"] for each in described["log_dirs"] if each["topics"]]
    (other,) = set(cluster.log_dirs) - {current}
    path = file("folders", replicas=[1], log_dirs=[other])
    assert ours("verify", path)[1][0]["status"] == "different"
    limited = ("--replica-alter-log-dirs-throttle", "1000000")
    assert ours("plan", path, "--execute", *limited)[0] == 0
    eventually(lambda: cluster.throttles("folders") == {f"broker 1 {LOG_DIR_RATE}": "1000000"})
    eventually(lambda: ours("verify", path)[0] == 0)
    eventually(lambda: cluster.throttles("folders") == {})
    verified = cluster.theirs("--verify", "--reassignment-json-file", path)
    assert "Reassignment of replica folders-0-1 completed successfully" in verified
