"""Decode keys and values of records to typed Arrow columns. This package needs pyarrow.

A :class:`~kafkacore.decode.decoder.Decoder` takes one column of bytes and returns one column for each field
of the wanted schema. The formats are JSON, Avro, and the scalars of Kafka's Java serializers.
"""
