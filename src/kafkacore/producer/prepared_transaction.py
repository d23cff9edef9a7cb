"""A transaction that one producer has filled and another ends.

The idea is KIP-939's, without what brokers have for it: until it is ended the transaction is an open one like
any other, with its time-out, and a new producer of its id aborts it.
"""

from __future__ import annotations

from typing import NamedTuple


class PreparedTransaction(NamedTuple):
    """Whose transaction it is. No secret, and of no use to anybody once it has ended."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
