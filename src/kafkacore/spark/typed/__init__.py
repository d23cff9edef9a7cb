"""Typed values: keys and values decoded inside the task, straight to the columns of the user's schema.

``options`` (texts in, what each side is out) → ``layout`` (Spark's schema: where each column comes from) →
``output`` (a task's batches). The decoders themselves are :mod:`kafkacore.decode`.
"""
