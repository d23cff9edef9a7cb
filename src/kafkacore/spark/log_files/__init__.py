"""``format("kafkacore-log")``: Kafka's log segment files to rows, without a broker.

    spark.read.format("kafkacore-log").load("/backup/kafka/flights-*")

``options`` → ``files`` (paths) → ``planning`` (driver: ranges that begin with a batch; ``transactions``) →
``reading`` (worker: batches to Arrow). ``source`` is what Spark calls.
"""
