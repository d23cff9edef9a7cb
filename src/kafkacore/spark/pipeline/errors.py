"""Errors of a job, with a message of one sentence in place of PySpark's long texts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kafkacore.errors import KafkaError
from kafkacore.spark.causes import last_cause


class PipelineError(KafkaError):
    """The Spark job failed. The message is the cause in one sentence; ``__cause__`` is the original error."""


class SinkError(PipelineError):
    """The sink cannot be read, because a file in its list is missing or damaged."""


@contextmanager
def spark_errors(kind: type[KafkaError], of: str = "") -> Iterator[None]:
    """Replace errors of PySpark and py4j by an error of type ``kind`` with a message of one sentence.

    Parameters
    ----------
    kind:
        Type of the error.
    of:
        Subject of the error. The message starts with it.
    """
    from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]  # py4j has no types
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JNetworkError, ConnectionError) as error:
        raise PipelineError("Spark's JVM exited unexpectedly. See the end of Spark's log") from error
    except (PySparkException, Py4JError) as error:
        raise kind(f"{of}: {last_cause(str(error))}" if of else last_cause(str(error))) from error
