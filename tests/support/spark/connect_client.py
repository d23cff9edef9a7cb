"""A program that uses Spark through a Spark Connect server, and prints as JSON what it has seen.

The addresses of the server and of a broker, two topics and a folder in. It starts no JVM: what it calls of
kafkacore runs here, the source and the sink in the server's processes.
"""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from eventually import BUDGET_S, eventually
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from kafkacore.errors import KafkaError
from kafkacore.spark import QueryMonitor, decode_batches, lag
from kafkacore.spark.causes import last_cause
from kafkacore.spark.monitor import GROUP
from kafkacore.spark.pipeline import ConsoleSink, ParquetSink, PipelineConfig, run_pipeline


class Client:
    """Of one server; ``places`` are a broker's address, a topic to read, one to write, and a folder."""

    def __init__(self, server: str, bootstrap_servers: str, source: str, target: str, folder: str) -> None:
        self._spark = SparkSession.builder.remote(server).getOrCreate()
        self._broker = {"kafka.bootstrap.servers": bootstrap_servers}
        self._source, self._target, self._folder = source, target, Path(folder)

    def batch(self) -> Any:
        """What a batch read finds, decoded on the way."""
        reader = self._spark.read.format("kafkacore").options(**self._broker, subscribe=self._source)
        typed = reader.option("value.format", "json").schema("id INT, _offset BIGINT").load()
        return [list(row) for row in typed.orderBy("id").collect()]

    def stream(self) -> Any:
        """A topic into another in several batches, watched."""
        monitor = QueryMonitor()
        self._spark.streams.addListener(monitor)
        options = {**self._broker, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "3"}
        reader = self._spark.readStream.format("kafkacore").options(**options, subscribe=self._source)
        writer = reader.load().select("key", "value").writeStream.format("kafkacore").queryName("copy")
        writer = writer.options(**self._broker, topic=self._target)
        writer = writer.option("checkpointLocation", str(self._folder / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(2 * BUDGET_S)
        behind = [lag(progress).total for progress in query.recentProgress if progress.numInputRows]
        return {
            "behind": behind,
            "last": lag(query.lastProgress).metrics(),
            "seen": self._seen(monitor, query),
        }

    def _seen(self, monitor: QueryMonitor, query: StreamingQuery) -> Any:
        """The figures, once the query's end has come round to the listener."""
        eventually(
            lambda: not monitor.metrics().get(f"{GROUP}.query=copy", {}).get("active", 1),
            lambda: query.status,
        )
        self._spark.streams.removeListener(monitor)
        found = monitor.metrics()[f"{GROUP}.query=copy"]
        return {name: found[name] for name in ("rows-total", "batches-total", "offsets-behind-latest-max")}

    def files(self) -> Any:
        """Segment files, by the format for them and as a column of bytes."""
        logs = self._folder / "orders-0"
        by_format = self._spark.read.format("kafkacore-log").load(str(logs))
        raw = self._spark.read.format("binaryFile").load(f"{logs}/*.log")
        decoded = decode_batches(raw, "content", topic="orders", partition=0)
        frames = {"by_format": by_format, "decoded": decoded}
        return {name: self._rows(frame) for name, frame in frames.items()}

    @staticmethod
    def _rows(frame: Any) -> Any:
        return [list(row) for row in frame.select("topic", "partition", "offset").orderBy("offset").collect()]

    def pipeline(self) -> Any:
        """A whole job, into files; and one whose sink would write from here."""
        job = PipelineConfig(
            self._broker["kafka.bootstrap.servers"],
            self._source,
            ParquetSink(self._folder / "parquet"),
            self._folder / "job.checkpoint",
            value_format="string",
        )
        batches: list[int] = []
        result = run_pipeline(self._spark, job, on_batch=lambda batch: batches.append(batch.rows))
        held = self._spark.read.parquet(str(self._folder / "parquet")).count()
        console = replace(job, sink=ConsoleSink())
        refused = self._refusal(lambda: run_pipeline(self._spark, console))
        return {"rows": [result.rows, sum(batches), held], "refused": refused}

    def refusals(self) -> Any:
        """How a person is told of a topic that is not there, and of a column that is not."""
        missing = self._spark.read.format("kafkacore").options(**self._broker, subscribe="nowhere")
        return {"topic": self._refusal(missing.load().count), "column": self._refusal(self._no_such_column)}

    def _no_such_column(self) -> None:
        decode_batches(self._spark.range(1), "raw")

    @staticmethod
    def _refusal(use: Any) -> str:
        try:
            use()
        except (PySparkException, KafkaError) as error:
            return last_cause(str(error))
        raise AssertionError("it was not refused")


def main() -> None:
    logging.captureWarnings(True)
    client = Client(*sys.argv[1:6])
    steps = (client.batch, client.stream, client.files, client.pipeline, client.refusals)
    sys.stdout.write(json.dumps({step.__name__: step() for step in steps}))


if __name__ == "__main__":
    main()
