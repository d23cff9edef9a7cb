"""Read a topic from segment files without a broker, and write it as Parquet.

The files may come from a backup, tiered storage or a copied data directory.

python examples/spark_backfill.py /backup/kafka orders orders.parquet
"""

import sys

from pyspark.sql import SparkSession

if len(sys.argv) < 4:
    sys.exit(__doc__)
folder, topic, target = sys.argv[1:4]
spark = SparkSession.builder.master("local[2]").appName("kafkacore backfill").getOrCreate()
records = (
    spark.read.format("kafkacore-log")
    .option("subscribe", topic)
    .option("value.format", "string")
    .load(folder)
)
records.write.mode("overwrite").partitionBy("partition").parquet(target)
written = spark.read.parquet(target)
for row in written.groupBy("partition").count().orderBy("partition").collect():
    print(f"partition {row['partition']}: {row['count']} records")
spark.stop()
