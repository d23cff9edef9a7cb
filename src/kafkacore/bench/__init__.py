"""Benchmarks that compare Kafka clients on a running cluster or on the embedded broker.

This is the implementation of ``kafkacore bench``. ``options`` describes a benchmark, ``runner`` runs it, and
``result`` defines the machine-readable result. Each client runs in its own process (``worker`` and
``peers``). The clients take turns, round by round. Every record is counted (``sequence`` and ``verify``).

This module imports nothing, because kafkacore's own modules would add to the measured memory of other
clients.
"""
