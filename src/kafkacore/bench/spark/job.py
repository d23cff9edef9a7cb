"""One query as data: what a driver process is told to run, and what a person is shown.

Does not know: whose turn it is, what is measured.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

#: Sinks that are no data source: one row with the result, for a check before anything is measured.
COLLECT = "collect"
#: The source of a job that writes: rows made by the JVM.
RANGE = "range"
#: Options that say where, not what: they differ from run to run.
_PLACES = ("kafka.bootstrap.servers", "subscribe", "topic", "path", "checkpointLocation")


@dataclass(frozen=True)
class Job:
    """A query: source, columns, sink."""

    #: Name of the source's format, or :data:`RANGE`.
    source: str
    options: dict[str, str] = field(default_factory=dict)
    #: In Spark's DDL; empty for the source's own.
    schema: str = ""
    #: SQL expressions of one ``selectExpr`` after the other.
    selects: tuple[tuple[str, ...], ...] = ()
    #: The column ``content`` holds log segments: their records are made of it by ``mapInArrow``, decoded by
    #: this package (:data:`kafkacore.bench.spark.segments.EXPLODERS`).
    exploded_by: str = ""
    #: Name of the sink's format, or :data:`COLLECT`.
    sink: str = "noop"
    sink_options: dict[str, str] = field(default_factory=dict)
    is_streaming: bool = False
    #: Of a :data:`RANGE`.
    rows: int = 0
    #: The query is run so often, one after the other.
    times: int = 1

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Job:
        """The inverse of :meth:`to_json`."""
        fields = json.loads(text)
        fields["selects"] = tuple(tuple(each) for each in fields["selects"])
        return cls(**fields)

    def query(self) -> str:
        """It as one would write it in PySpark, without the places."""
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
