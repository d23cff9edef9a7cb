"""A program that uses Spark through a Spark Connect server and prints what it observes as JSON.

It starts no JVM. The functions of kafkacore that it calls run in this process; the source and the sink run in
the server's processes.
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
    """A client of one server. ``places``: a broker's address, a topic to read, one to write, a folder."""

    def __init__(self, server: str, bootstrap_servers: str, source: str, target: str, folder: str) -> None:
        self._spark = SparkSession.builder.remote(server).getOrCreate()
        self._broker = {"kafka.bootstrap.servers": bootstrap_servers}
        self._source, self._target, self._folder = source, target, Path(folder)

    def batch(self) -> Any:
        """Return the result of a batch read with decoding."""
        reader = self._spark.read.format("kafkacore").options(**self._broker, subscribe=self._source)
        typed = reader.option("value.format", "json").schema("id INT, _offset BIGINT").load()
        return [list(row) for row in typed.orderBy("id").collect()]

    def stream(self) -> Any:
        """Copy a topic to another one in several batches with a query listener."""
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
        """Return the figures once the listener has received the end of the query."""
        eventually(
            lambda: not monitor.metrics().get(f"{GROUP}.query=copy", {}).get("active", 1),
            lambda: query.status,
        )
        self._spark.streams.removeListener(monitor)
        found = monitor.metrics()[f"{GROUP}.query=copy"]
        return {name: found[name] for name in ("rows-total", "batches-total", "offsets-behind-latest-max")}

    def files(self) -> Any:
        """Read segment files with their own format and as a binary column."""
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
        """Run a whole job that writes files, and one whose sink would write from this process."""
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
        """Return the errors for a missing topic and a missing column."""
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
        raise AssertionError("expected an error")


def main() -> None:
    logging.captureWarnings(True)
    client = Client(*sys.argv[1:6])
    steps = (client.batch, client.stream, client.files, client.pipeline, client.refusals)
    sys.stdout.write(json.dumps({step.__name__: step() for step in steps}))


if __name__ == "__main__":
    main()
