"""Input sizes of the micro-benchmarks. ``--small`` only checks that each of them still runs."""

from __future__ import annotations

import pytest

SIZES = [16_000, 250_000, 1_000_000]
SMALL_SIZES = [1_000]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--small", action="store_true", help="use tiny inputs; the figures mean nothing")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "size" in metafunc.fixturenames:
        metafunc.parametrize("size", SMALL_SIZES if metafunc.config.getoption("--small") else SIZES)


@pytest.fixture(scope="session")
def record_count(request: pytest.FixtureRequest) -> int:
    return 500 if request.config.getoption("--small") else 100_000
