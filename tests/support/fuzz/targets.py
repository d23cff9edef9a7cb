"""All fuzz targets by name, and the share of a run that each one gets."""

from __future__ import annotations

from functools import cache
from typing import Final

from fuzz import file_targets, group_targets, message_targets, record_targets, security_targets
from fuzz.harness import Target

MODULES: Final = (message_targets, record_targets, group_targets, file_targets, security_targets)
#: Share of all inputs, by target. Messages get more: one name stands for hundreds of parsers.
_SHARES: Final = {
    "requests": 8.0,
    "responses": 8.0,
    "properties": 0.2,
    "topics": 0.5,
    "dynamic-configs": 0.5,
    "jwt": 0.1,
}


def share_of(target: Target) -> float:
    return _SHARES.get(target.name, 1.0)


@cache
def targets() -> dict[str, Target]:
    found: dict[str, Target] = {}
    for module in MODULES:
        for target in module.targets():
            assert target.name not in found
            found[target.name] = target
    return found
