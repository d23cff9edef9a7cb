"""A transaction that one producer has begun and another one ends.

The idea is that of KIP-939, but brokers are not involved. Until it is ended, the transaction is an ordinary
open transaction: the broker aborts it after its time-out, or when a new producer uses its transactional id.
"""

from __future__ import annotations

from typing import NamedTuple


class PreparedTransaction(NamedTuple):
    """The identity of a prepared transaction. It is not a secret."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
