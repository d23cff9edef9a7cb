"""Hostile bytes for every parser: no crash, no hang, and no error except the documented ones.

A normal run tries 1.2 million inputs in separate processes. ``make fuzz`` runs for as long as you choose.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz.harness import Judge, Target, mutated
from fuzz.targets import MODULES, share_of, targets
from hypothesis import given, settings
from hypothesis import strategies as st
from model.dose import dose, new_seed, note

from kafkacore.errors import CorruptRecordError, KafkaError
from kafkacore.protocol import API_REGISTRY

PROJECT = Path(__file__).resolve().parents[3]
#: Number of inputs for all targets together. Runs under a sanitizer set fewer.
INPUTS = int(os.environ.get("KAFKACORE_FUZZ_INPUTS", dose(300_000, 100_000_000)))


def fuzz(*arguments: str, module: str = "fuzz") -> subprocess.CompletedProcess[str]:
    paths = [str(PROJECT / "tests" / "support"), os.environ.get("PYTHONPATH") or str(PROJECT / "src")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.timeout(dose(600, 30_000))
@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_hostile_inputs_raise_what_is_promised_and_nothing_else(module: object) -> None:
    seed = new_seed()
    chosen = module.targets()
    whole = sum(share_of(target) for target in targets().values())
    inputs = round(INPUTS * sum(share_of(target) for target in chosen) / whole)
    arguments = [f"--target={target.name}" for target in chosen]
    run = fuzz(*arguments, f"--inputs={inputs}", f"--seed={seed}")
    assert run.returncode == 0, run.stdout + run.stderr
    lines = run.stdout.splitlines()[1:]
    tried = [int(line.split(": ")[1].split(" ")[0]) for line in lines]
    assert sum(tried) >= inputs
    note(f"hostile bytes for {len(chosen)} parsers ({module.__name__})", seed, inputs=sum(tried))


@pytest.mark.parametrize("name", targets())
@settings(max_examples=60)
@given(data=st.data())
def test_whatever_hypothesis_thinks_of_is_taken_or_refused(name: str, data: st.DataObject) -> None:
    target = targets()[name]
    valid = data.draw(st.sampled_from(target.corpus))
    place = st.integers(0, max(len(valid) - 1, 0))
    found = bytearray(valid)
    for at, size, piece in data.draw(st.lists(st.tuples(place, st.integers(0, 9), st.binary(max_size=9)))):
        found[at : at + size] = piece
    judge = Judge()
    judge.take(target, bytes(found))
    assert judge.findings == []


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="atheris does not support Python 3.14")
@pytest.mark.parametrize("name", ["subscription", "dynamic-configs"])
def test_inputs_may_be_guided_by_the_lines_that_they_reach(name: str) -> None:
    run = fuzz("--guided", f"--target={name}", "--inputs=2000", f"--seed={new_seed()}")
    assert run.returncode == 0, run.stdout + run.stderr
    # Some inputs reached lines that the valid inputs do not reach.
    assert "NEW" in run.stderr


def test_valid_input_of_every_target_is_taken() -> None:
    for target in targets().values():
        judge = Judge()
        judge.take_corpus(target)
        assert judge.findings == []


def test_corpus_has_a_message_of_every_api_and_version() -> None:
    for name, kind in (("requests", 0), ("responses", 1)):
        found = {struct.unpack_from(">hh", data) for data in targets()[name].corpus}
        assert found == {
            (int(key), version)
            for key, classes in API_REGISTRY.items()
            for version in range(classes[kind].MIN_VERSION, classes[kind].MAX_VERSION + 1)
        }


# ---- The harness detects faults ----------------------------------------------------------------------------
def judged(run: object, data: bytes = b"input", **configs: object) -> Judge:
    judge = Judge(**configs)
    judge.take(Target("planted", run, [data]), data)
    return judge


def test_error_that_nobody_has_promised_is_a_finding() -> None:
    def raise_index_error(data: bytes) -> None:
        raise IndexError(len(data))

    (finding,) = judged(raise_index_error).findings
    assert (finding.what, finding.data) == ("raises IndexError: 5", b"input")


@pytest.mark.parametrize("error", [KafkaError, CorruptRecordError])
def test_promised_error_is_none(error: type[KafkaError]) -> None:
    def refuse(data: bytes) -> None:
        raise error("no")

    judge = judged(refuse)
    assert (judge.findings, judge.refused) == ([], 1)


def test_input_that_takes_long_is_a_finding() -> None:
    def count(data: bytes) -> None:
        sum(range(300_000))

    (finding,) = judged(count, longest_s=0.0001).findings
    assert "of processor time" in finding.what


def test_memory_that_the_bytes_could_not_fill_is_a_finding() -> None:
    judge = Judge()
    target = Target("planted", lambda data: bytearray(1 << 20), [b"input"])
    for _ in range(500):
        judge.take(target, b"input")
    (finding,) = judge.findings
    assert finding.what.startswith("takes 104")


def test_process_that_dies_is_a_finding_with_its_input(tmp_path: Path) -> None:
    planted = "import os\nfrom fuzz.harness import Target\n"
    planted += (
        "targets_of = lambda: {'dies': Target('dies', lambda data: data == b'bad' or os.abort(), [b'bad'])}\n"
    )
    planted += "import fuzz.targets\nfuzz.targets.targets = targets_of\nimport fuzz.__main__ as main\n"
    planted += "main.sys.exit(main.main())\n"
    script = tmp_path / "planted.py"
    script.write_text(planted)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(PROJECT / "tests" / "support"), str(PROJECT / "src")]),
    }
    run = subprocess.run(
        [sys.executable, str(script), "--target=dies", "--inputs=9", "--seed=1"],
        env=environment,
        check=False,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert run.returncode == 1
    (kept,) = (tmp_path / ".cache" / "fuzz").iterdir()
    assert kept.read_bytes() != b"bad"
    shown = f"dies: the process died with status -6 of {kept.read_bytes().hex()}, kept as "
    assert shown in run.stdout


def test_mutations_of_one_seed_are_the_same() -> None:
    from random import Random

    made = [
        [mutated(b"valid" * 9, b"other" * 9, Random(seed).random, 4) for seed in range(99)] for _ in range(2)
    ]
    assert made[0] == made[1]
    assert len(set(made[0])) > 90
