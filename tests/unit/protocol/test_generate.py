"""The code generator: the committed files are up to date, and the generator reports outdated ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkacore.protocol import generate
from kafkacore.protocol._codegen import constant_case, module_of_messages
from kafkacore.protocol._fieldcode import snake_case
from kafkacore.protocol.schema.declaration import message


def test_committed_code_is_what_the_declarations_give() -> None:
    assert generate.main(["--check"]) == 0


def test_check_names_stale_missing_and_superfluous_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generate, "TARGET", tmp_path / "generated")
    assert generate.main(["--check"]) == 1
    assert "stale: generated/produce.py" in capsys.readouterr().err
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0
    produce, fetch, old = (tmp_path / "generated" / name for name in ("produce.py", "fetch.py", "old_api.py"))
    produce.write_text(produce.read_text() + "\n")
    fetch.unlink()
    old.write_text("")
    capsys.readouterr()
    assert generate.main(["--check"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"stale: generated/{name}.py" for name in ("fetch", "old_api", "produce")
    ]
    assert generate.main([]) == 0
    assert not old.exists()
    assert generate.main(["--check"]) == 0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("TimeoutMs", "timeout_ms"),
        ("KRaftVersionFeature", "kraft_version_feature"),
        ("V3AndBelowTopics", "v3_and_below_topics"),
        ("Enable2Pc", "enable2_pc"),
        ("Name", "name"),
    ],
)
def test_names_are_in_snake_case_as_kafkas_generator_makes_it(name: str, expected: str) -> None:
    assert snake_case(name) == expected
    assert constant_case(name) == expected.upper()


def test_generated_code_decides_by_version_in_line() -> None:
    declared = message(
        "Thing",
        "  Old int8 0-1\n  Between string 1-2\n  New []int32? 2+ = null",
        versions="0-3",
        flexible="3+",
    )
    code = module_of_messages("A thing.", [declared])
    for line in ("if version <= 1:", "if 1 <= version <= 2:", "if version >= 2:", "compact = version >= 3"):
        assert line in code
