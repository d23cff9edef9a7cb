"""The data source ``format("kafkacore-log")``, which reads Kafka's log segment files without a broker.

    spark.read.format("kafkacore-log").load("/backup/kafka/flights-*")

Spark calls ``source``. On the driver, ``options`` checks the options, ``files`` finds the files,
``transactions`` finds aborted transactions, and ``planning`` divides the files into tasks. On a worker,
``reading`` converts record batches to Arrow.
"""
