"""Streaming ETL: read orders as JSON, write invoices to another topic, and print the lag.

python examples/spark_etl.py localhost:9092 orders invoices ./invoices.checkpoint
"""

import logging
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from kafkacore.spark import QueryMonitor, lag

if len(sys.argv) < 5:
    sys.exit(__doc__)
bootstrap_servers, source, target, checkpoint = sys.argv[1:5]
logging.basicConfig(format="%(message)s")
logging.getLogger("kafkacore.spark.monitor").setLevel(logging.INFO)

builder = SparkSession.builder.master("local[2]").appName("kafkacore ETL")
spark = builder.config("spark.sql.shuffle.partitions", 2).getOrCreate()
monitor = QueryMonitor()  # logs a line for each batch; start_exporter(monitor, 9400) exports to Prometheus
spark.streams.addListener(monitor)

# The tasks decode the values, and only the fields of this schema.
orders = (
    spark.readStream.format("kafkacore")
    .option("kafka.bootstrap.servers", bootstrap_servers)
    .option("subscribe", source)
    .option("startingOffsets", "earliest")
    .option("value.format", "json")
    .option("mode", "DROPMALFORMED")
    .schema("id BIGINT, item STRING, price DOUBLE, _timestamp TIMESTAMP")
    .load()
)
invoices = (
    orders.where("price >= 1")
    .withColumn("gross", sql.expr("CAST(price * 1.19 AS DECIMAL(10, 2))"))
    .select(sql.col("item").alias("key"), sql.to_json(sql.struct("id", "gross", "_timestamp")).alias("value"))
)
query = (
    invoices.writeStream.format("kafkacore")
    .option("kafka.bootstrap.servers", bootstrap_servers)
    .option("topic", target)
    .option("checkpointLocation", checkpoint)
    .queryName("invoices")
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
count = sum(progress.numInputRows for progress in query.recentProgress)
behind = lag(query.lastProgress)
print(f"{count} orders read, {behind.total if behind else 0} left")
spark.stop()
