"""Run a fuzz target on inputs chosen by atheris (libFuzzer), which keeps those that reach new Python lines.

    PYTHONPATH=tests/support python -m fuzz.guided --alone --target NAME [--seconds 60 | --inputs 100000]

It gets no feedback from compiled code, see ``__main__``.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["kafkacore"], enable_loader_override=False):
    from fuzz.__main__ import arguments, keep
    from fuzz.harness import LONGEST_ALONE_S, LONGEST_S, Judge, LastInput, PrintableLines
    from fuzz.targets import targets


class FoundError(Exception):
    """Ends the run because of a finding."""


def main() -> None:
    """Run the target. This does not return: atheris exits, with a non-zero status after a finding."""
    options = arguments()
    logging.getLogger("kafkacore").addHandler(PrintableLines())
    logging.getLogger("kafkacore").propagate = False
    target = targets()[options.target[0]]
    last = None if options.last is None else LastInput(options.last)
    judge = Judge(LONGEST_ALONE_S if options.strict else LONGEST_S, last)
    judge.take_corpus(target)

    def take(data: bytes) -> None:
        judge.take(target, data)
        if judge.findings:
            finding = judge.findings[0]
            raise FoundError(f"{finding}\n  kept as {keep(target.name, finding.data)}")

    with tempfile.TemporaryDirectory() as folder:
        for number, data in enumerate(target.corpus):
            (Path(folder) / str(number)).write_bytes(data)
        by_count = f"-runs={options.inputs}"
        by_time = f"-max_total_time={max(round(options.seconds or 10), 1)}"
        limit = by_time if options.inputs is None else by_count
        seed = f"-seed={options.seed % 2**31 + 1}"
        # Write no files except the stored input; the harness checks memory.
        quiet = ["-print_final_stats=0", f"-artifact_prefix={folder}/", "-rss_limit_mb=0"]
        atheris.Setup([sys.argv[0], folder, limit, seed, *quiet], take)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
