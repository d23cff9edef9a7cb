"""Description of a query, for the driver that runs it and for the result."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

#: Name for a sink that returns one row to the driver. It is used to check the records before the measurement.
COLLECT = "collect"
#: Name for a source of rows that the JVM creates. It is used by jobs that write.
RANGE = "range"
#: Options that differ from run to run and are left out of the result.
_PLACES = ("kafka.bootstrap.servers", "subscribe", "topic", "path", "checkpointLocation")


@dataclass(frozen=True)
class Job:
    """Query with its source, columns and sink."""

    #: Name of the source's format, or :data:`RANGE`.
    source: str
    options: dict[str, str] = field(default_factory=dict)
    #: Schema in Spark's DDL; empty for the default of the source.
    schema: str = ""
    #: SQL expressions of consecutive ``selectExpr`` calls.
    selects: tuple[tuple[str, ...], ...] = ()
    #: Package that decodes log segments in the column ``content``, through ``mapInArrow``
    #: (:data:`kafkacore.bench.spark.segments.EXPLODERS`).
    exploded_by: str = ""
    #: Name of the sink's format, or :data:`COLLECT`.
    sink: str = "noop"
    sink_options: dict[str, str] = field(default_factory=dict)
    is_streaming: bool = False
    #: Number of rows of a :data:`RANGE`.
    rows: int = 0
    #: Number of times to run the query, one after the other.
    times: int = 1

    def to_json(self) -> str:
        """Return the job as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Job:
        """Parse the output of :meth:`to_json`."""
        fields = json.loads(text)
        fields["selects"] = tuple(tuple(each) for each in fields["selects"])
        return cls(**fields)

    def query(self) -> str:
        """Return the query as PySpark code, without the options that differ from run to run."""
        if self.source == RANGE:
            text = f"spark.range({self.rows})"
        else:
            text = f'spark.{"readStream" if self.is_streaming else "read"}.format("{self.source}")'
            text += "".join(_option(name, value) for name, value in self.options.items())
            text += f".schema({_short(self.schema)})" if self.schema else ""
            text += ".load()"
        text += f".mapInArrow(records_by_{self.exploded_by})" if self.exploded_by else ""
        for select in self.selects:
            text += f".selectExpr({', '.join(map(_short, select))})"
        if self.sink == COLLECT:
            return text + ".collect()"
        text += f'.{"writeStream" if self.is_streaming else "write"}.format("{self.sink}")'
        text += "".join(_option(name, value) for name, value in self.sink_options.items())
        return text + (".trigger(availableNow=True).start()" if self.is_streaming else ".save()")


def _option(name: str, value: str) -> str:
    return "" if name in _PLACES else f'.option("{name}", "{value}")'


def _short(text: str) -> str:
    return f'"{text}"' if len(text) <= 120 else f'"{text[:60]} ..."'
