"""Decode keys and values of records to typed Arrow columns. This package needs pyarrow.

A :class:`~kafkacore.decode.decoder.Decoder` takes a column of bytes and returns one column for each field of
the schema that the caller wants. The formats are JSON, Avro, and the scalars of Kafka's Java serializers.
"""
