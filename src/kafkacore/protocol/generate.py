"""Write the modules of :mod:`kafkacore.protocol.generated` from the declarations.

``python -m kafkacore.protocol.generate`` writes modules that are stale and removes modules without a
declaration. With ``--check``, the command writes nothing, prints the names of the stale files and exits with
status 1. This package imports some of the generated modules: if they are missing, restore them before you
generate.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from kafkacore.protocol import _codegen
from kafkacore.protocol._fieldcode import snake_case
from kafkacore.protocol.schema import APIS, DATA

TARGET = Path(__file__).resolve().parent / "generated"
INIT = '''\
"""Messages of all APIs, one module per API. Generated; do not edit."""
'''
ABOUT_DATA = {
    "headers": "Headers of requests and responses.",
    "consumer_protocol": "Metadata and assignments in JoinGroup and SyncGroup of consumers.",
    "group_records": "Records that a group coordinator writes to ``__consumer_offsets``.",
    "transaction_records": "Records that a transaction coordinator writes to ``__transaction_state``.",
    "old_fetch": "Fetch in the versions that Kafka 4 has removed.",
    "old_list_offsets": "ListOffsets in the version that Kafka 4 has removed.",
    "control_records": "Control records of transactions and of the metadata log.",
    "metadata_records": "Records of the cluster's metadata log that this broker writes.",
    "partition_records": "Records of partitions in the metadata log of Apache Kafka.",
    "principal": "A principal that a broker forwards to another broker.",
}


def generated_files() -> dict[str, str]:
    """Return the text of each file of ``generated/`` by its name."""
    files = {"__init__.py": INIT, "api_key.py": _codegen.api_key_module(APIS)}
    for api in APIS:
        if api.versions:
            files[f"{snake_case(api.name)}.py"] = _codegen.module_of_api(api)
    for name, messages in DATA.items():
        files[f"{name}.py"] = _codegen.module_of_messages(ABOUT_DATA[name], messages)
    return files


def stale_files(target: Path) -> dict[str, str | None]:
    """Return the expected text of each stale file by its name; ``None`` if the file should not exist."""
    wanted: dict[str, str | None] = dict(generated_files())
    present = {path.name: path.read_text(encoding="utf-8") for path in target.glob("*.py")}
    names = sorted(wanted.keys() | present.keys())
    return {name: wanted.get(name) for name in names if wanted.get(name) != present.get(name)}


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m kafkacore.protocol.generate", description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="Write nothing; exit with status 1 if a file is stale."
    )
    options = parser.parse_args(arguments)
    stale = stale_files(TARGET)
    if options.check:
        for name in stale:
            sys.stderr.write(f"stale: {TARGET.name}/{name}\n")
        return 1 if stale else 0
    TARGET.mkdir(parents=True, exist_ok=True)
    for name, text in stale.items():
        if text is None:
            (TARGET / name).unlink()
        else:
            (TARGET / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
