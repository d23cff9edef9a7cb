"""No sequence of Python calls on an extension class crashes the interpreter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from model import extension_classes

PROJECT = Path(__file__).resolve().parents[2]


def test_no_call_of_an_extension_class_crashes(tmp_path: Path) -> None:
    """Leave each class half-initialized, copy, pickle and subclass it, and pass hostile arguments.

    A new class needs an entry in ``model.extension_classes`` if it cannot be created without arguments.
    """
    note = tmp_path / "note"
    command = [sys.executable, "-m", "model.extension_classes", str(note)]
    done = subprocess.run(
        command, cwd=PROJECT / "tests" / "support", capture_output=True, text=True, check=False
    )
    if done.returncode not in {0, 1} or "classes" not in done.stdout:
        call = note.read_bytes().rstrip(b"\0").decode(errors="replace")
        pytest.fail(f"crashed in {call}:\n{done.stderr[-4000:]}")
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]


def test_the_list_of_extension_classes_is_not_empty() -> None:
    names = {f"{cls.__module__}.{cls.__qualname__}" for cls in extension_classes.extension_classes()}
    assert {"kafkacore.record._batch.RecordBatch", "kafkacore.decode._avro_reader.AvroReader"} <= names
    assert set(extension_classes.FACTORIES) <= names, "remove the factories of classes that do not exist"
