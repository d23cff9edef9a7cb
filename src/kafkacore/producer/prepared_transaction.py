"""A transaction that one producer begins and another producer commits or aborts.

The idea is that of KIP-939, but brokers are not involved. For the broker, the transaction is an ordinary open
transaction. The broker aborts the transaction after its time-out, or when a new producer uses the same
transactional id.
"""

from __future__ import annotations

from typing import NamedTuple


class PreparedTransaction(NamedTuple):
    """The identity of a prepared transaction. This information is not secret."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
