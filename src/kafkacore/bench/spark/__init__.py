"""Benchmarks that compare ``format("kafkacore")`` with Spark's own ``format("kafka")`` on the same cluster.

This is the implementation of ``kafkacore bench spark``. ``options`` describes a benchmark, and ``runner``
runs it and returns a result like that of the other modes. ``rows`` defines the queries, each as a ``job``. A
separate program (``driver``) runs them and measures the JVM and the Python processes (``processes``).
"""
