"""The assignors of consumer groups: ``uniform`` and ``range``.

As in Kafka 4.3, they do not use racks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafkacore.broker.group.assignor.interfaces import (
    Assignment,
    Assignor,
    MemberSubscription,
    PartitionAssignorError,
)
from kafkacore.broker.group.assignor.range_assignor import RangeAssignor
from kafkacore.broker.group.assignor.uniform_assignor import UniformAssignor

__all__ = ["ASSIGNORS", "Assignment", "Assignor", "MemberSubscription", "PartitionAssignorError"]

#: The assignors by name.
ASSIGNORS: Final[Mapping[str, Assignor]] = {one.name: one for one in (UniformAssignor(), RangeAssignor())}
