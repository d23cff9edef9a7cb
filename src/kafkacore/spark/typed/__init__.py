"""Decoding of keys and values inside a task, directly into the columns of the user's schema.

``options`` parses the formats of key and value. ``layout`` determines the origin of each column of the
schema. :mod:`kafkacore.decode` builds the batches of a task.
"""
