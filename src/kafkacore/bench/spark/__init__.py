"""Benchmarks that compare ``format("kafkacore")`` with Spark's own ``format("kafka")`` on the same cluster.

This is the implementation of ``kafkacore bench spark``. ``options`` describes a benchmark, and ``runner``
runs it and returns a result in the same format as the other modes. ``rows`` defines the rows of the result
table, each with the queries that it compares (``job``). A separate program (``driver``) runs the queries and
measures the JVM and the Python processes (``processes``).
"""
