"""``spark.read`` and ``spark.readStream`` ``.format("kafkacore")``: from options to Arrow batches.

On the driver, ``batch_reader`` and ``stream_reader`` ask the ``planner`` for ranges of ``offsets``. On a
worker, ``range_reader`` runs ``fetch`` for one range, with a consumer from ``consumers``.
"""
