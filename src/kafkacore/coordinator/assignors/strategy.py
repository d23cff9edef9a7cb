"""Creates the assignors that ``partition_assignment_strategy`` names.

Assignors of this package are discovered by importing its modules, so a new assignor need not be added here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import Final, cast

from kafkacore.coordinator.assignors.abstract import PartitionAssignor, RebalanceProtocol
from kafkacore.coordinator.assignors.foreign import ForeignAssignor, KafkaPythonAssignor
from kafkacore.errors import KafkaConfigurationError

_JAVA_PACKAGE = "org.apache.kafka.clients.consumer."


def _modules(folder: str, package: str) -> Iterator[str]:
    """Yield the names of the modules in a folder of a package and its sub-packages."""
    # pkgutil.walk_packages() imports inspect, which takes 5 ms.
    for name in sorted(os.listdir(folder)):
        module, ending = os.path.splitext(name)
        if ending == ".py" and not module.startswith("__"):
            yield f"{package}.{module}"
        elif os.path.isdir(path := os.path.join(folder, name)):
            yield from _modules(path, f"{package}.{name}")


def _found() -> Iterator[type[PartitionAssignor]]:
    """Yield every assignor class of this package that has a name."""
    for module in _modules(os.path.dirname(__file__), __name__.rpartition(".")[0]):
        if module == __name__:
            continue
        for kind in vars(import_module(module)).values():
            if (
                isinstance(kind, type)
                and issubclass(kind, PartitionAssignor)
                and kind.__module__ == module
                and kind.name
            ):
                yield kind


_ASSIGNORS: Final = tuple(_found())
#: Assignors by their own name, and by the name of the equivalent Java class.
_BY_NAME: Final = {kind.name: kind for kind in _ASSIGNORS} | {
    kind.java_name: kind for kind in _ASSIGNORS if kind.java_name
}


def assignors_for(strategy: object) -> list[PartitionAssignor]:
    """Return the assignors that a consumer offers to its group, in order of preference.

    Parameters
    ----------
    strategy:
        One assignor, or several as an iterable or as text separated by commas. Each is a name (``"range"``),
        a Java class name, or an assignor class or object. An assignor is a :class:`PartitionAssignor` or has
        kafka-python's interface. For a name or a class, each call creates a new object.

    Raises
    ------
    KafkaConfigurationError
        If the strategy is empty, an entry is not an assignor, two assignors have the same name, or the
        assignors share no rebalance protocol.
    """
    entries: Iterable[object]
    if isinstance(strategy, str):
        entries = [name.strip() for name in strategy.split(",") if name.strip()]
    elif isinstance(strategy, Iterable) and not isinstance(strategy, type):
        entries = strategy
    else:
        entries = [strategy]
    found: list[PartitionAssignor] = []
    for entry in entries:
        assignor = _assignor(entry)
        if any(assignor.name == other.name for other in found):
            raise KafkaConfigurationError(
                f"partition_assignment_strategy has two assignors named {assignor.name!r}"
            )
        found.append(assignor)
    if not found:
        raise KafkaConfigurationError("partition_assignment_strategy is empty: name at least one assignor")
    common_protocol(found)
    return found


def common_protocol(assignors: Sequence[PartitionAssignor]) -> RebalanceProtocol:
    """Return the rebalance protocol of a consumer with these assignors: cooperative if all support it.

    Raises
    ------
    KafkaConfigurationError
        If the assignors have no rebalance protocol in common.
    """
    shared = set(RebalanceProtocol)
    for assignor in assignors:
        shared &= set(assignor.supported_protocols())
    if not shared:
        names = ", ".join(assignor.name for assignor in assignors)
        raise KafkaConfigurationError(
            f"assignors {names} share no rebalance protocol (eager or cooperative) and cannot be combined"
        )
    return max(shared)


def _assignor(entry: object) -> PartitionAssignor:
    if isinstance(entry, str):
        made = _BY_NAME.get(entry.removeprefix(_JAVA_PACKAGE))
        if made is None:
            names = ", ".join(sorted(_BY_NAME))
            raise KafkaConfigurationError(f"unknown assignor {entry!r}; known assignors are {names}")
        return made()
    # Accept a class as well as an object, because users of kafka-python pass both. Some of these classes have
    # only class methods.
    assignor = entry() if isinstance(entry, type) else entry
    if isinstance(assignor, PartitionAssignor):
        if not assignor.name:
            raise KafkaConfigurationError(
                f"assignor {type(assignor).__name__} has no name: set its attribute 'name'"
            )
        return assignor
    if all(callable(getattr(assignor, method, None)) for method in ("assign", "metadata", "on_assignment")):
        return KafkaPythonAssignor(cast(ForeignAssignor, assignor))
    raise KafkaConfigurationError(
        f"{entry!r} is not a partition assignor: give a name, a class or an object in "
        "partition_assignment_strategy"
    )
