"""Format a result as tables of text, with a title, a header and rows for each case."""

from __future__ import annotations

from collections.abc import Iterator

from kafkacore.bench.result import Case, Entry, FigureName, Result

Table = tuple[str, list[str], list[list[str]]]

#: Heading and number format of each figure.
_COLUMNS: dict[FigureName, tuple[str, str]] = {
    "records_per_s": ("records/s", ",.0f"),
    "mb_per_s": ("MB/s", ",.1f"),
    "cpu_s_per_million": ("CPU s/M", ".3f"),
    "producer_cpu_s_per_million": ("producer", ".3f"),
    "consumer_cpu_s_per_million": ("consumer", ".3f"),
    "peak_rss_mib": ("peak MiB", ",.0f"),
    "jvm_cpu_s_per_million": ("JVM", ".3f"),
    "python_cpu_s_per_million": ("Python", ".3f"),
    "worker_peak_mib": ("worker MiB", ",.0f"),
    "ms_per_batch": ("ms/batch", ",.1f"),
    "cpu_ms_per_batch": ("CPU ms/batch", ",.1f"),
    "broker_cpu_s_per_million": ("broker CPU s/M", ".3f"),
}
#: Figure of a stage → its heading.
STAGE_COLUMNS = {"p50": "p50", "p99": "p99", "typical": "middle 10 %", "slowest": "slowest 1 %"}
_LATENCIES = ("p50", "p99", "p99.9", "max")


def entries_by_case(result: Result) -> dict[Case, list[Entry]]:
    """Return the entries of each case, in the order in which they were measured."""
    cases: dict[Case, list[Entry]] = {}
    for entry in result["results"]:
        size, rate = entry["size"], entry["rate"]
        case = Case(entry["mode"], entry["codec"], entry["partitions"], entry["records"], size, rate)
        cases.setdefault(case, []).append(entry)
    return cases


def tables(result: Result) -> Iterator[Table]:
    """Yield a table for each case."""
    for case, entries in entries_by_case(result).items():
        yield case.title, *_table(case, entries)


def stage_tables(result: Result) -> Iterator[Table]:
    """Yield a table of the stages of each path, in microseconds, for each entry with stages."""
    for entry in result["results"]:
        for path, stages in entry["median"].get("stages_us", {}).items():
            rows = [
                [stage, *(format(figures[name], ",.0f") for name in STAGE_COLUMNS)]
                for stage, figures in stages.items()
            ]
            title = f"{entry['peer']}, from due to {path}: microseconds until"
            yield title, ["", *STAGE_COLUMNS.values()], rows


def _table(case: Case, entries: list[Entry]) -> tuple[list[str], list[list[str]]]:
    names = [name for name in _COLUMNS if any(name in entry["median"] for entry in entries)]
    if case.rate is not None:
        names = [name for name in names if name not in ("records_per_s", "mb_per_s")]
    latencies = [name for name in _LATENCIES if any("latency_ms" in entry["median"] for entry in entries)]
    header = ["", *(_COLUMNS[name][0] for name in names)]
    header += [f"{name} ms" for name in latencies]
    has_batches = "ms_per_batch" in names
    fast: FigureName = "ms_per_batch" if has_batches else "records_per_s"
    cheap: FigureName = "cpu_ms_per_batch" if has_batches else "cpu_s_per_million"
    has_spread = case.rate is None and any(len(entry["rounds"]) > 1 for entry in entries)
    header += ["spread"] if has_spread else []
    header += ["faster", "less CPU"] if case.rate is None else ["less p99", "less CPU"]
    rows = []
    for entry in entries:
        if entry["void"]:
            rows.append([entry["peer"], "VOID", *[""] * (len(header) - 2)])
            continue
        median = entry["median"]
        row = [entry["peer"]]
        row += [format(median[name], _COLUMNS[name][1]) if name in median else "" for name in names]
        row += [format(median["latency_ms"][name], ",.2f") for name in latencies]
        if has_spread:
            row.append(_spread(entry, fast))
        row += [_times(entry, fast if case.rate is None else "latency_p99"), _times(entry, cheap)]
        rows.append(row)
    return header, rows


def _spread(entry: Entry, figure: FigureName) -> str:
    """Return how far the minimum and the maximum of all rounds are from the median, in percent."""
    low, high = entry["spread"][figure]
    middle = entry["median"][figure]
    return f"-{(1 - low / middle) * 100:.0f} +{(high / middle - 1) * 100:.0f} %"


def _times(entry: Entry, name: str) -> str:
    found = entry["advantage"].get(name)
    return "" if found is None else f"{found:.2f}x"


def setting_lines(result: Result) -> list[str]:
    """Return the settings of each client, without the codec and the address, and without repetition."""
    lines = []
    for entry in result["results"]:
        parts = entry["settings"] if "producer" in entry["settings"] else {"": entry["settings"]}
        for settings in parts.values():
            shown = [
                f"{name}={value}"
                for name, value in settings.items()
                if not name.startswith(("bootstrap", "compression"))
            ]
            if shown:
                lines.append(f"{entry['peer']}: {', '.join(shown)}")
    return list(dict.fromkeys(lines))
