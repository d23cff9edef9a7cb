from __future__ import annotations

import sys
from types import ModuleType

import pytest

import kafkacore
from kafkacore.installed_version import installed_version


def test_version_is_that_of_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    built = ModuleType("kafkacore._version")
    monkeypatch.setattr(built, "VERSION", "1.2.3", raising=False)
    monkeypatch.setitem(sys.modules, "kafkacore._version", built)
    assert installed_version() == "1.2.3"


def test_checkout_without_a_build_has_an_unknown_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kafkacore._version", None)
    assert installed_version() == "unknown"


def test_package_has_the_version_of_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    built = ModuleType("kafkacore._version")
    monkeypatch.setattr(built, "VERSION", "1.2.3", raising=False)
    monkeypatch.setitem(sys.modules, "kafkacore._version", built)
    assert kafkacore.__version__ == "1.2.3"
    assert "__version__" in dir(kafkacore)
