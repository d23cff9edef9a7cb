"""The table of all commands, from which ``kafkacore --help`` is written without importing them."""

from __future__ import annotations

from typing import Final, NamedTuple


class Command(NamedTuple):
    """A command.

    Attributes
    ----------
    module:
        Module of this package with the function ``add_parser(commands)``.
    summary:
        The command's work in a few words, for the list of all commands.
    """

    module: str
    summary: str


#: Commands by name, in the order of the help.
COMMANDS: Final = {
    "demo": Command("demo", "run real data through the embedded broker and Spark to Parquet"),
    "broker": Command("broker", "run a durable single-node broker until Ctrl-C"),
    "topics": Command("topics", "list, describe, create, alter or delete topics"),
    "produce": Command("produce", "write lines as records to a topic"),
    "consume": Command("consume", "print the records of topics"),
    "acls": Command("acls", "list, add or remove access control entries"),
    "users": Command("users", "list, create or delete SCRAM users"),
    "lag-exporter": Command("lag_exporter", "serve the lag of consumer groups to Prometheus"),
    "groups": Command("admin.groups", "list, describe, reset or delete groups"),
    "offsets": Command("admin.offsets", "print offsets of partitions, also by time"),
    "configs": Command(
        "admin.configs", "describe, alter or reset configurations of topics, brokers, groups and others"
    ),
    "cluster": Command("admin.cluster", "print brokers, controller, features and quorum"),
    "transactions": Command("admin.transactions", "list, describe, find hanging or abort transactions"),
    "quotas": Command("admin.quotas", "describe or alter quotas of users, clients and IP addresses"),
    "log-dirs": Command("admin.log_dirs", "print log directories of brokers, and sizes of partitions"),
    "elect-leaders": Command("admin.elect_leaders", "elect leaders of partitions"),
    "reassign": Command("admin.reassign", "move replicas to other brokers"),
    "pipeline": Command(
        "pipeline", "run a topic through Spark to Parquet, Delta, another topic or the screen"
    ),
    "dump-log": Command("dump_log", "print the batches, records or index entries of log files"),
    "bench": Command("bench", "compare this client with other clients"),
    "completion": Command("completion", "print a completion script for bash, zsh or fish"),
}
