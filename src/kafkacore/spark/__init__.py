"""Kafka for PySpark, without a JAR.

    df = (
        spark.readStream.format("kafkacore")
        .option("kafka.bootstrap.servers", "host:9092")
        .option("subscribe", "t")
        .load()
    )

Options, columns and checkpoints are those of Spark's built-in ``kafka`` source. Installing kafkacore is
enough: Spark 4 finds the format by itself (``pyspark_kafkacore``).

``options`` → ``planner`` (driver: partitions and offsets) → ``offsets`` (ranges) → ``fetch`` (worker: a range
to Arrow). ``source`` is what Spark calls; ``pipeline`` is a whole job on it.
"""
