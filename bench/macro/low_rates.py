"""Compare kafkacore with confluent-kafka at low rates: latency, and CPU time per record.

    python bench/macro/low_rates.py                  # about twenty minutes; needs Java
    python bench/macro/low_rates.py --rates 1000 --sides embedded --transports plain --rounds 3
    python bench/macro/low_rates.py --small --results out --pages ''   # only checks that it still runs

Producer and consumer are separate processes, with one partition, records of 100 bytes, linger 0, and acks 1
(mode `roundtrip` of `kafkacore bench`). Latencies count from the time at which a record was due: until the
producer had the acknowledgement, and until the consumer's call returned the record. CPU time is that of each
process while the records are sent, without its start and warm-up. The clients run in alternating order. The
embedded broker runs with `flush=os`, as Apache Kafka does by default. With `flush=ack`, its default, the
disk decides. Only kafkacore's acknowledgements are measured there, over the first of the transports. The side
`busy` has 50 records per second and a thread in the producer's process that computes in Python. A thread that
waits for the GIL gets it after 5 ms. A record waits for it once until it is received, because the program
wakes up to send it, and twice until the program has its acknowledgement.

The result is the table of docs/measured/low-rates.md and a file of its own,
`bench/results/<date>-<short sha>-low-rates.json`. `--chart FILE.png` draws it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broker import OURS, THEIRS
from setting import PROJECT

from kafkacore.bench.chart import OURS_COLOUR, PEER_COLOUR
from kafkacore.bench.options import OURS as OUR_CLIENT
from kafkacore.bench.options import PACED_S, BenchOptions
from kafkacore.bench.runner import run_bench
from kafkacore.cli.report import Reporter
from kafkacore.testing import EmbeddedBroker

sys.path[:0] = [str(PROJECT / "bench"), str(PROJECT / "tests" / "support")]

from measurement import Measurement, parser_of  # noqa: E402 - in the folder above
from model.certificates import Authority  # noqa: E402
from peers.apache_kafka import ApacheKafka, free_ports  # noqa: E402

PEER = "confluent"
RATES = (100, 1_000, 5_000)
SIDES = {"embedded": OURS, "ack": "flush=ack", "busy": f"{OURS} and a computing thread", "kafka": THEIRS}
#: Rate of the side ``busy``. At 100 records per second, each thread waits for the GIL all the time.
BUSY_RATE = 50
#: Transport → name of the listener.
TRANSPORTS = {"plain": "PLAINTEXT", "tls": "SSL"}
#: Records that are sent before the measurement. They take a fraction of a second.
WARM_UP_RECORDS = 1_000
#: Rate and seconds of a run that does not count, for Apache Kafka. A cold JVM is too slow for the high rates.
WARM_UP_RATE, WARM_UP_S = 5_000, 3.0


@dataclass(frozen=True)
class Target:
    """A listener of a broker."""

    side: str
    transport: str
    servers: str
    security: Mapping[str, str]

    @property
    def is_acknowledged_only(self) -> bool:
        return self.side == "ack"

    @property
    def peers(self) -> tuple[str, ...]:
        return () if self.side == "ack" else (PEER,)


@contextlib.contextmanager
def started(sides: list[str], transports: list[str], is_small: bool) -> Iterator[list[Target]]:
    """Start the brokers, each with a listener for plaintext and one for TLS with a P-256 certificate."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="low-rates-")))
        authority = Authority()
        certificate = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": authority.issue().write(folder, "server").both,
        }
        security = {
            "plain": {},
            "tls": {"security_protocol": "SSL", "ssl_cafile": authority.write(folder)},
        }
        addresses: dict[str, dict[str, str]] = {}
        for side, flush in (("embedded", "os"), ("ack", "ack"), ("busy", "os")):
            if side in sides:
                listeners = ",".join(f"{name}://localhost:0" for name in TRANSPORTS.values())
                ours = stack.enter_context(EmbeddedBroker(flush=flush, listeners=listeners, **certificate))
                addresses[side] = {
                    transport: ours.client_settings(listener=name)["bootstrap_servers"]
                    for transport, name in TRANSPORTS.items()
                }
        if "kafka" in sides:
            theirs = ApacheKafka(folder / "kafka", to_measure=not is_small)
            (port,) = free_ports(1)
            theirs.add_tls_listener(port, certificate)
            stack.enter_context(theirs)
            addresses["kafka"] = {"plain": theirs.bootstrap_servers, "tls": f"localhost:{port}"}
        yield [
            Target(side, transport, addresses[side][transport], security[transport])
            for side in sides
            for transport in (transports[:1] if side in ("ack", "busy") else transports)
        ]


def measure(target: Target, rate: int, seconds: float, rounds: int) -> dict[str, Any]:
    """Measure all clients at one rate, and return the result of ``kafkacore bench``."""
    options = BenchOptions(
        modes=("produce" if target.is_acknowledged_only else "roundtrip",),
        bootstrap=target.servers,
        peers=target.peers,
        records=max(1, int(rate * seconds)),
        rate=rate,
        acks="1",
        linger_ms=0,
        rounds=rounds,
        warm_up_records=WARM_UP_RECORDS,
        has_busy_thread=target.side == "busy",
        security=dict(target.security),
    )
    result: dict[str, Any] = dict(run_bench(options, Reporter()))
    return result


def rows_of(target: Target, rate: int, result: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the row of each client. Its figures have the same names for all brokers."""
    for entry in result["results"]:
        median = dict(entry["median"])
        if target.is_acknowledged_only and median:
            # The mode `produce` has one process, and its latency is that of the acknowledgement.
            median["acknowledged_ms"] = median.pop("latency_ms")
            median["producer_cpu_s_per_million"] = median["cpu_s_per_million"]
        yield {
            "rate": rate,
            "broker": SIDES[target.side],
            "transport": {"plain": "plaintext", "tls": "TLS"}[target.transport],
            "peer": entry["peer"],
            "void": entry["void"],
            "median": median,
            "rounds": entry["rounds"],
        }


def draw(rows: list[dict[str, Any]], file: Path) -> None:
    """Draw latencies and CPU times: a row of charts for each broker and transport."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    columns = {
        "acknowledged, ms": "acknowledged_ms",
        "received, ms": "latency_ms",
        "producer's CPU, ms/1,000": "producer_cpu_s_per_million",
        "consumer's CPU, ms/1,000": "consumer_cpu_s_per_million",
    }
    places = list(dict.fromkeys((row["broker"], row["transport"]) for row in rows))
    figure, grid = plt.subplots(
        len(places), len(columns), figsize=(15, 2.4 * len(places)), squeeze=False, layout="constrained"
    )
    rates = sorted({row["rate"] for row in rows})
    for place, axes_of_row in zip(places, grid, strict=True):
        for (title, name), axes in zip(columns.items(), axes_of_row, strict=True):
            shown = [
                row for row in rows if (row["broker"], row["transport"]) == place and name in row["median"]
            ]
            if not shown:
                axes.set_axis_off()
                continue
            for row in shown:
                is_ours = row["peer"] == OUR_CLIENT
                at = rates.index(row["rate"]) + (-0.2 if is_ours else 0.2)
                colour = OURS_COLOUR if is_ours else PEER_COLOUR
                value = row["median"][name]
                if isinstance(value, dict):
                    # A light bar shows p99, and a dark bar in front of it p50.
                    axes.bar(at, value["p99"], 0.38, color=colour, alpha=0.4)
                    value = value["p50"]
                axes.bar(at, value, 0.38, color=colour)
            axes.set_xlim(-0.5, len(rates) - 0.5)
            axes.set_xticks(range(len(rates)), [f"{rate:,}/s" for rate in rates])
            axes.set_title(f"{', '.join(place)}: {title}", fontsize=8, loc="left")
            axes.tick_params(labelsize=8, length=0)
    figure.suptitle(f"{OUR_CLIENT} (orange) and {PEER} (grey); light: p99", fontsize=11, x=0.01, ha="left")
    figure.savefig(file, dpi=110)
    plt.close(figure)


def main() -> int:
    parser = parser_of(__doc__, rounds=5)
    parser.add_argument(
        "--rates",
        default=",".join(map(str, RATES)),
        help="rates to measure, in records per second (default: %(default)s)",
    )
    parser.add_argument("--sides", default=",".join(SIDES), help="brokers to measure (default: %(default)s)")
    parser.add_argument(
        "--transports", default=",".join(TRANSPORTS), help="transports to measure (default: %(default)s)"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=7.0,
        help=f"seconds during which each client sends, at most {PACED_S:g} (default: %(default)g)",
    )
    parser.add_argument("--chart", type=Path, metavar="FILE.png", help="draw a chart; needs matplotlib")
    arguments = parser.parse_args()
    sides, transports = arguments.sides.split(","), arguments.transports.split(",")
    for what, given, known in (("side", sides, SIDES), ("transport", transports, TRANSPORTS)):
        if strange := [one for one in given if one not in known]:
            parser.error(f"unknown {what} {strange[0]}; it must be one of {', '.join(known)}")
    if not 0 < arguments.seconds <= PACED_S:
        parser.error(f"--seconds must be more than 0 and at most {PACED_S:g}")
    if arguments.chart and importlib.util.find_spec("matplotlib") is None:
        parser.error("--chart needs matplotlib")
    rates = [int(rate) for rate in arguments.rates.split(",")]
    seconds, rounds = arguments.seconds, arguments.rounds
    if arguments.small:
        rates, transports, seconds, rounds = rates[-1:], transports[-1:], 0.1, 1
    measurement = Measurement("macro/low_rates.py", "-low-rates", arguments)
    rows, versions = [], {}
    with started(sides, transports, arguments.small) as targets:
        for target in targets:
            if target.side == "kafka" and not arguments.small:
                measure(target, WARM_UP_RATE, WARM_UP_S, 1)
        runs = [(rate, target) for rate in rates for target in targets if target.side != "busy"]
        runs += [(BUSY_RATE, target) for target in targets if target.side == "busy"]
        for rate, target in runs:
            result = measure(target, rate, seconds, rounds)
            rows += rows_of(target, rate, result)
            versions |= result["versions"]
    measurement.keep(low_rates={"rounds": rounds, "seconds": seconds, "versions": versions, "rows": rows})
    if arguments.chart:
        draw(rows, arguments.chart)
    measurement.finish()
    return 1 if any(row["void"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
