"""Every micro-benchmark still runs, by the command of ``make bench`` on tiny inputs; none is left out."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
MICRO = PROJECT / "bench" / "micro"
QUICKLY = (
    "--small",
    "--benchmark-min-rounds=1",
    "--benchmark-max-time=0.000001",
    "--benchmark-min-time=0.000001",
)


def written_benchmarks() -> set[str]:
    """``file.py::test`` of all that is written under bench/micro."""
    return {
        f"{path.name}::{node.name}"
        for path in MICRO.glob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def command_of_make_bench() -> list[str]:
    """What follows ``python`` in the Makefile's rule."""
    lines = (PROJECT / "Makefile").read_text().splitlines()
    rule = next(at for at, line in enumerate(lines) if line.startswith("bench:"))
    command = lines[rule + 1].strip().removeprefix("$(BIN)/python ").removesuffix(" $(BENCH_ARGS)")
    return command.replace("'", "").split()


def test_every_benchmark_runs_by_the_command_of_make_bench(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    command = [*command_of_make_bench(), *QUICKLY, f"--benchmark-json={figures}", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, *command], cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    ran = json.loads(figures.read_text())["benchmarks"]
    assert {benchmark["fullname"].split("/")[-1].split("[")[0] for benchmark in ran} == written_benchmarks()
    assert all(benchmark["extra_info"] for benchmark in ran), "each gives its figure in a unit that says more"
