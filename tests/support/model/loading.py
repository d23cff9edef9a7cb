"""Load the partitions of a coordinator on the test's own thread, on a disk that may lose power meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from unittest.mock import patch

from kafkacore.broker.coordinator.loader import LoadJob, PartitionLoader
from kafkacore.testing.disk import PowerLossError


def until_power_is_lost(run: Callable[[PartitionLoader], None]) -> Callable[[PartitionLoader], None]:
    """Return ``run``, the loader's thread, such that a power failure ends it without an error."""

    def guarded(loader: PartitionLoader) -> None:
        with suppress(PowerLossError):
            run(loader)

    return guarded


@contextmanager
def loading_at_once() -> Iterator[None]:
    """Let the broker continue only when a partition is loaded. A power failure meanwhile ends the load."""
    load = PartitionLoader.load

    def load_now(loader: PartitionLoader, job: LoadJob) -> None:
        load(loader, job)
        thread = loader._thread
        if thread is not None:
            thread.join()

    guarded = until_power_is_lost(PartitionLoader._run)
    with patch.object(PartitionLoader, "load", load_now), patch.object(PartitionLoader, "_run", guarded):
        yield
