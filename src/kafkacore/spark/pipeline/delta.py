"""Write each micro-batch to a Delta table exactly once.

The commit that adds the rows of a batch also stores the batch number as an app transaction of Delta's
protocol. So this module recognizes a batch that Spark repeats. The app id of the transaction is the query's
id, which Spark stores in the checkpoint. With a new checkpoint, the query has a new id. Rows pass through the
driver's memory, one batch at a time. This module needs the extra ``kafkacore[delta]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from kafkacore.errors import KafkaConfigurationError
from kafkacore.logs import logger_of
from kafkacore.spark.pipeline.config import DeltaSink
from kafkacore.spark.pipeline.errors import PipelineError
from kafkacore.spark.secrets import resolved
from kafkacore.spark.sink.writers import QUERY_ID

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

logger = logger_of(__name__)


class DeltaWriter:
    """Function for ``foreachBatch`` that writes a batch to a Delta table.

    Parameters
    ----------
    sink:
        The table.

    Raises
    ------
    KafkaConfigurationError
        The package deltalake is not installed.
    """

    def __init__(self, sink: DeltaSink) -> None:
        try:
            import deltalake
        except ImportError:
            raise KafkaConfigurationError(
                "the sink delta needs the package deltalake: run pip install 'kafkacore[delta]'"
            ) from None
        self._delta = deltalake
        self._sink = sink
        self._storage = {
            name.removeprefix("storage."): resolved(text, name)
            for name, text in sink.options.items()
            if name.startswith("storage.")
        }
        merge = _lower(sink.options).get("mergeschema", "false").lower() == "true"
        self._schema_mode: Literal["merge"] | None = "merge" if merge else None

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        query = frame.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
        assert query, "Spark sets the id of the query for each micro-batch"
        if self.is_written(query, batch_id):
            logger.info("batch %s of query %s is already in the table; skipping it", batch_id, query)
            return
        rows = frame.toArrow()
        if rows.num_rows:
            self.write(rows, query, batch_id)

    def is_written(self, query: str, batch_id: int) -> bool:
        """Return whether the table contains this batch of this query, or a later batch of the query."""
        if not self._delta.DeltaTable.is_deltatable(self._sink.path, self._storage):
            return False
        table = self._delta.DeltaTable(self._sink.path, storage_options=self._storage)
        last = table.transaction_version(query)
        return last is not None and last >= batch_id

    def write(self, rows: pa.Table, query: str, batch_id: int) -> None:
        """Add the rows of a batch to the table, in one commit.

        Raises
        ------
        PipelineError
            deltalake cannot write the rows. The message contains deltalake's error in one line.
        """
        done = self._delta.CommitProperties(app_transactions=[self._delta.Transaction(query, batch_id)])
        try:
            self._delta.write_deltalake(
                self._sink.path,
                rows,
                mode="append",
                partition_by=list(self._sink.partition_by) or None,
                schema_mode=self._schema_mode,
                storage_options=self._storage or None,
                commit_properties=done,
            )
        except (self._delta.exceptions.DeltaError, ValueError) as error:
            raise PipelineError(f"failed to write the batch to the Delta table: {_line(error)}") from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


def _lower(options: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): text for name, text in options.items()}
