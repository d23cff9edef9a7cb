"""The readers of ``spark.read`` and ``spark.readStream`` for ``format("kafkacore")``.

On the driver, ``batch_reader`` and ``stream_reader`` ask the ``planner`` for ranges of ``offsets``. On a
worker, ``range_reader`` runs ``fetch`` for one range, with a consumer from ``consumers``.
"""
