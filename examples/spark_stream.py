"""Count the words in a topic with Spark Structured Streaming, without a JAR.

python examples/spark_stream.py localhost:9092 greetings
"""

import sys

from pyspark.sql import SparkSession

if len(sys.argv) < 3:
    sys.exit(__doc__)
bootstrap_servers, topic = sys.argv[1:3]
builder = SparkSession.builder.master("local[2]").appName("kafkacore example")
# Each partition has a state store. The default of 200 partitions is meant for a cluster.
spark = builder.config("spark.sql.shuffle.partitions", 2).getOrCreate()
stream = (
    spark.readStream.format("kafkacore")
    .option("kafka.bootstrap.servers", bootstrap_servers)
    .option("subscribe", topic)
    .option("startingOffsets", "earliest")
    .load()
)
words = stream.selectExpr("CAST(value AS STRING) AS word").groupBy("word").count()
query = (
    words.writeStream.outputMode("complete").format("memory").queryName("words").trigger(availableNow=True)
)
query.start().awaitTermination()
for row in spark.table("words").orderBy("word").collect():
    print(row.word, row["count"])
spark.stop()
