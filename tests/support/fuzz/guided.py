"""Inputs chosen by atheris (libFuzzer): those that reach new lines of Python are kept and changed on.

    PYTHONPATH=tests/support python -m fuzz.guided --alone --target NAME [--seconds 60 | --inputs 100000]

What is compiled reaches no lines that it sees, see ``__main__``.
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
    """A finding, which ends the run."""


def main() -> None:
    """Does not return: atheris ends the process, with a status above 0 if there was a finding."""
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
        # Nothing is written beside what is kept; memory is the harness's to judge.
        quiet = ["-print_final_stats=0", f"-artifact_prefix={folder}/", "-rss_limit_mb=0"]
        atheris.Setup([sys.argv[0], folder, limit, seed, *quiet], take)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
