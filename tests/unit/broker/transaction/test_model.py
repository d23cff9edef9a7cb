"""Random requests are answered as the model of the coordinator answers them, also near the last epoch."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from model.coordinated_transactions import T0, T1, T2, TIMEOUT_MS, CoordinatedTransactions
from model.transaction_model import Known, TransactionModel

from kafkacore.broker.transaction.transaction_coordinator import ProducerIdAndEpoch
from kafkacore.broker.transaction.transaction_metadata import TransactionMetadata, TransactionState
from kafkacore.structs import INT16_MAX

NAMES = "abc"


@pytest.mark.parametrize("seed", range(30))
def test_requests_are_answered_as_by_the_model(tmp_path: Path, seed: int) -> None:
    chance = Random(seed)
    harness = CoordinatedTransactions(tmp_path)
    model = TransactionModel(next_id=1000)
    identities = [ProducerIdAndEpoch(77, INT16_MAX - 5), ProducerIdAndEpoch(1, 0)]
    if seed % 2:
        first = identities[0]
        model.known["a"] = Known(first.producer_id, first.epoch, first.producer_id)
        harness.put(
            TransactionMetadata(
                transactional_id="a",
                producer_id=first.producer_id,
                producer_epoch=first.epoch,
                previous_producer_id=first.producer_id,
                timeout_ms=TIMEOUT_MS,
            )
        )
    for _ in range(150):
        name, producer = chance.choice(NAMES), chance.choice(identities[-8:])
        if chance.random() < 0.5 and name in model.known:
            producer = ProducerIdAndEpoch(model.known[name].producer_id, model.known[name].epoch)
        action = chance.random()
        if action < 0.25:
            expected = producer if chance.random() < 0.6 else None
            outcome = harness.init(name, expected)
            assert outcome == model.init(name, expected), (name, expected)
            if not outcome.code:
                identities.append(outcome.producer)
        elif action < 0.55:
            partitions = set(chance.sample((T0, T1, T2), 2))
            code = harness.add(producer, *partitions, transactional_id=name, version=chance.choice((0, 2)))
            assert code == model.add(name, producer, partitions), (name, producer)
        elif action < 0.6:
            found = harness.verify(producer, T0, transactional_id=name)
            assert found == {T0: model.verify(name, producer, T0)}
        elif action < 0.93:
            commits, version = chance.random() < 0.6, chance.choice((0, 2))
            outcome = harness.end(producer, commits=commits, transactional_id=name, version=version)
            expected_outcome = model.end(name, producer, "commit" if commits else "abort", version)
            assert outcome == expected_outcome, (name, producer, commits, version)
            if not outcome.code:
                identities.append(outcome.producer)
        elif action < 0.96:
            harness = harness.restarted(loses_power=chance.random() < 0.5)
            model.restart()
        else:
            harness.pass_ms(2 * TIMEOUT_MS)
            model.time_out()
        for each, known in model.known.items():
            state = harness.state(each)
            assert (state.producer_id, state.producer_epoch) == (known.producer_id, known.epoch)
            assert state.partitions == known.partitions
            assert (state.state is TransactionState.ONGOING) == known.is_open
            assert state.previous_producer_id == known.previous_id
