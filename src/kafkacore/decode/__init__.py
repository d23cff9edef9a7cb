"""Values of records in, typed Arrow columns out: what the bytes of a key or a value are.

A :class:`~kafkacore.decode.decoder.Decoder` takes one column of bytes and gives one column for each field of
the schema that is wanted. Scalars are as Java's serializers write them. Needs pyarrow. Does not know:
consumers, Spark, where the bytes came from.
"""
