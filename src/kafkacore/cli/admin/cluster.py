"""``kafkacore cluster``: brokers, controller, features, metadata quorum and API versions."""

from __future__ import annotations

import argparse

from kafkacore.admin import UpdateFeatureType
from kafkacore.cli.admin_client import admin_client
from kafkacore.cli.command_parser import CommandParser, Commands, add_command
from kafkacore.cli.commands import COMMANDS
from kafkacore.cli.common import CommandError, natural
from kafkacore.cli.connection import add_bootstrap
from kafkacore.cli.tables import add_json, print_json, print_rows
from kafkacore.cli.times import iso_time
from kafkacore.structs import printable

EXAMPLES = """  kafkacore cluster describe
  kafkacore cluster brokers --json
  kafkacore cluster features
  kafkacore cluster update-feature transaction.version 1 --downgrade safe
  kafkacore cluster quorum
  kafkacore cluster apis --broker 1
"""


def add_parser(commands: Commands[CommandParser]) -> None:
    """Add ``cluster`` with its actions to the command line."""
    parser = add_command(commands, "cluster", COMMANDS["cluster"].summary, EXAMPLES, _describe)
    actions = parser.add_choices("action")
    for name, summary, run in (
        ("describe", "print the id, the controller and the brokers of the cluster", _describe),
        ("brokers", "print the brokers", _brokers),
        ("features", "print supported and finalized levels of features", _features),
        ("update-feature", "change the finalized level of a feature", _update_feature),
        ("quorum", "print leader, voters and observers of the metadata quorum", _quorum),
        ("apis", "print the API versions that a broker serves", _apis),
    ):
        action = add_command(actions, name, summary, EXAMPLES, run)
        add_bootstrap(action)
        if name == "update-feature":
            _add_update(action)
            continue
        add_json(action)
        if name == "apis":
            action.add_argument(
                "--broker", type=natural, metavar="ID", help="id of the broker to ask (default: any)"
            )


def _add_update(action: argparse.ArgumentParser) -> None:
    action.add_argument("feature", metavar="FEATURE", help="name of the feature, such as transaction.version")
    action.add_argument(
        "level", type=natural, metavar="LEVEL", help="level to finalize; 0 disables the feature"
    )
    action.add_argument(
        "--downgrade",
        choices=("safe", "unsafe"),
        help="allow a lower level than the current level; 'unsafe' may lose metadata "
        "(default: allow only upgrades)",
    )
    action.add_argument("--dry-run", action="store_true", help="only check the update, do not apply it")


def _describe(arguments: argparse.Namespace) -> int:
    with admin_client(arguments) as admin:
        cluster = admin.describe_cluster()
    if arguments.json:
        print_json(cluster)
        return 0
    print(
        f"cluster {printable(str(cluster['cluster_id']))}: controller {cluster['controller_id']}, "
        f"{len(cluster['brokers'])} brokers"
    )
    print_rows([{**broker} for broker in cluster["brokers"]])
    return 0


def _brokers(arguments: argparse.Namespace) -> int:
    with admin_client(arguments) as admin:
        cluster = admin.describe_cluster()
    rows = [
        {**broker, "is_controller": broker["broker_id"] == cluster["controller_id"]}
        for broker in sorted(cluster["brokers"], key=lambda broker: broker["broker_id"])
    ]
    print_rows(rows, arguments.json)
    return 0


def _features(arguments: argparse.Namespace) -> int:
    with admin_client(arguments) as admin:
        features = admin.describe_features()
    rows = []
    for name, feature in sorted(features.items()):
        lowest, highest = feature.get("supported", (None, None))
        row = {
            "feature": name,
            "supported_min": lowest,
            "supported_max": highest,
            "finalized": feature["finalized"][1] if "finalized" in feature else None,
            "epoch": feature.get("finalized_epoch"),
        }
        rows.append(row)
    print_rows(rows, arguments.json)
    return 0


_DOWNGRADES = {
    None: UpdateFeatureType.UPGRADE,
    "safe": UpdateFeatureType.SAFE_DOWNGRADE,
    "unsafe": UpdateFeatureType.UNSAFE_DOWNGRADE,
}


def _update_feature(arguments: argparse.Namespace) -> int:
    kind = _DOWNGRADES[arguments.downgrade]
    with admin_client(arguments) as admin:
        admin.update_features({arguments.feature: (kind, arguments.level)}, validate_only=arguments.dry_run)
    name = printable(arguments.feature)
    if arguments.dry_run:
        print(f"{name} can be set to level {arguments.level}")
    else:
        print(f"{name} has level {arguments.level}")
    return 0


def _quorum(arguments: argparse.Namespace) -> int:
    with admin_client(arguments) as admin:
        quorum = admin.describe_metadata_quorum()
    partitions = [each for topic in quorum["topics"] for each in topic["partitions"]]
    if not partitions or partitions[0]["error"]:
        reason = printable(partitions[0]["error"]) if partitions else "the broker returned no partition"
        raise CommandError(f"the metadata quorum cannot be described: {reason}")
    partition = partitions[0]
    leader = partition["leader_id"]
    ends = {each["replica_id"]: each["log_end_offset"] for each in partition["current_voters"]}
    rows = [
        {
            "node_id": each["replica_id"],
            "directory_id": each["replica_directory_id"],
            "log_end_offset": each["log_end_offset"],
            "lag": max(ends.get(leader, partition["high_watermark"]) - each["log_end_offset"], 0),
            "last_fetch": iso_time(each["last_fetch_timestamp"]),
            "last_caught_up": iso_time(each["last_caught_up_timestamp"]),
            "status": "leader" if each["replica_id"] == leader else status,
        }
        for status, replicas in (("voter", partition["current_voters"]), ("observer", partition["observers"]))
        for each in replicas
    ]
    if arguments.json:
        print_json(
            {
                "leader_id": leader,
                "leader_epoch": partition["leader_epoch"],
                "high_watermark": partition["high_watermark"],
                "replicas": rows,
            }
        )
        return 0
    print(
        f"quorum: leader {leader}, epoch {partition['leader_epoch']}, high watermark "
        f"{partition['high_watermark']}"
    )
    print_rows(rows)
    return 0


def _apis(arguments: argparse.Namespace) -> int:
    with admin_client(arguments) as admin:
        if arguments.broker is None:
            versions = admin.api_versions()
        else:
            versions = admin.get_broker_version_data(arguments.broker)
    rows = [
        {"api": key.name.lower(), "key": int(key), "min_version": lowest, "max_version": highest}
        for key, (lowest, highest) in sorted(versions.items())
    ]
    print_rows(rows, arguments.json)
    return 0
