"""Lakehouse ingest: copy a topic into a Delta table without a JAR. Repeated runs write each record once.

pip install 'kafkacore[spark,delta]'
python examples/spark_lakehouse.py localhost:9092 orders ./orders.delta ./orders.checkpoint
"""

import sys
from pathlib import Path

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from kafkacore.spark.pipeline import DeltaSink, PipelineConfig, run_pipeline

if len(sys.argv) < 5:
    sys.exit(__doc__)
bootstrap_servers, topic, table, checkpoint = sys.argv[1:5]
spark = SparkSession.builder.master("local[2]").appName("kafkacore lakehouse").getOrCreate()
job = PipelineConfig(
    bootstrap_servers=bootstrap_servers,
    topic=topic,
    value_format="json",
    schema="id BIGINT, item STRING, price DOUBLE",
    keep=("offset", "timestamp"),
    derive=(("day", "to_date(timestamp)"),),
    sink=DeltaSink(table, partition_by=("day",)),
    checkpoint=Path(checkpoint),
)
result = run_pipeline(spark, job, on_batch=lambda batch: print(f"batch {batch.number}: {batch.rows} rows"))
spark.stop()

held = DeltaTable(table).to_pyarrow_table(columns=["id"]).num_rows
print(f"{result.rows} records written, the table has {held}")
