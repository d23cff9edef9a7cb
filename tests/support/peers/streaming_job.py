"""A streaming job for spark-submit: a topic to Parquet, or to another topic, in many small batches.

It goes on from its checkpoint, and ends when all that was there at its start has been read. Nothing of
kafkacore is named but the format: the workers find it by themselves. Run by ``submitted.py``.
"""

from __future__ import annotations

import argparse

from pyspark.sql import SparkSession


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("bootstrap")
    parser.add_argument("topic")
    parser.add_argument("folder", help="takes the checkpoint, and the Parquet in out/")
    parser.add_argument("--to", metavar="TOPIC", help="write to a topic")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="of the source")
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
