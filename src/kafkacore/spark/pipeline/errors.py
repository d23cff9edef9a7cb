"""How a job ends that cannot go on: what PySpark raises in, one sentence out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kafkacore.errors import KafkaError
from kafkacore.spark.causes import last_cause


class PipelineError(KafkaError):
    """The Spark job failed; the message is its cause in one sentence, ``__cause__`` the whole story."""


class SinkError(PipelineError):
    """What the sink says that it holds cannot be read: a file of it is gone or damaged."""


@contextmanager
def spark_errors(kind: type[KafkaError], of: str = "") -> Iterator[None]:
    """Turn what PySpark and its bridge to the JVM raise into ``kind``, with one sentence, which begins with
    ``of``: what was not understood.
    """
    from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]  # py4j has no types
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JNetworkError, ConnectionError) as error:
        raise PipelineError("Spark's JVM has ended; what it said last is in Spark's log") from error
    except (PySparkException, Py4JError) as error:
        raise kind(f"{of}: {last_cause(str(error))}" if of else last_cause(str(error))) from error
