"""A streaming job for spark-submit that writes a topic to Parquet or to another topic in small batches.

It resumes from its checkpoint, and exits when all records that existed at its start have been read. Of
kafkacore, it names only the format; the workers find the source themselves. ``submitted.py`` runs it.
"""

from __future__ import annotations

import argparse

from pyspark.sql import SparkSession


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("bootstrap")
    parser.add_argument("topic")
    parser.add_argument("folder", help="folder of the checkpoint and of the Parquet files in out/")
    parser.add_argument("--to", metavar="TOPIC", help="topic to write to (default: write Parquet)")
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="option of the source"
    )
    parser.add_argument("--sink-option", action="append", default=[], metavar="NAME=VALUE")
    arguments = parser.parse_args()
    spark = SparkSession.builder.appName("streaming job").getOrCreate()
    frame = (
        spark.readStream.format("kafkacore")
        .option("kafka.bootstrap.servers", arguments.bootstrap)
        .option("subscribe", arguments.topic)
        .option("startingOffsets", "earliest")
        .options(**dict(each.split("=", 1) for each in arguments.option))
        .load()
    )
    if arguments.to:
        writer = (
            frame.select("key", "value")
            .writeStream.format("kafkacore")
            .option("kafka.bootstrap.servers", arguments.bootstrap)
            .option("topic", arguments.to)
        )
    else:
        writer = frame.writeStream.format("parquet").option("path", f"{arguments.folder}/out")
    writer = writer.options(**dict(each.split("=", 1) for each in arguments.sink_option))
    writer = writer.option("checkpointLocation", f"{arguments.folder}/checkpoint")
    writer.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
