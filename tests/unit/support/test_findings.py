"""Storage of findings, and their short summary."""

from __future__ import annotations

from pathlib import Path

from model.findings import Finding, keep, runs, summary

FINDINGS = [Finding(f"{number}#7 is lost", "ours", number) for number in range(3, 40)]
FINDINGS.append(Finding("offset 9 has two values", "log", 5))


def test_findings_of_a_kind_are_told_in_few_lines() -> None:
    assert summary(FINDINGS) == [
        "37 of a kind, after 3 to 39 kills; the first:",
        "after 3 kills, ours: 3#7 is lost",
        "after 4 kills, ours: 4#7 is lost",
        "after 5 kills, log: offset 9 has two values",
    ]


def test_every_finding_is_kept_with_its_seed_client_and_kill(tmp_path: Path) -> None:
    for seed in (1, 2):
        keep(FINDINGS, "killed", seed, tmp_path / "all.txt")
    lines = (tmp_path / "all.txt").read_text().splitlines()
    assert len(lines) == 2 * len(FINDINGS)
    assert lines[0] == "killed (seed 1) after 3 kills, ours: 3#7 is lost"
    assert lines[-1] == "killed (seed 2) after 5 kills, log: offset 9 has two values"


def test_numbers_in_a_row_are_one_run() -> None:
    assert list(runs([])) == []
    assert list(runs([4])) == [(4, 4)]
    assert list(runs([1, 2, 3, 7, 9, 10])) == [(1, 3), (7, 7), (9, 10)]
