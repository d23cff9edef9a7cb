"""The options of a benchmark."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from kafkacore.bench import security
from kafkacore.bench.sequence import NUMBER_BYTES
from kafkacore.bench.task import ClientSettings
from kafkacore.errors import KafkaConfigurationError
from kafkacore.structs import CODEC_NAMES

MODES = ("produce", "consume", "group", "arrow", "roundtrip", "broker")
PEERS = ("confluent", "kafka-python", "aiokafka", "java")
CODECS = ("none", *CODEC_NAMES)
PROFILES = ("tuned", "default")
OURS = "kafkacore"
#: Default rate of the mode ``roundtrip``, in records per second.
ROUNDTRIP_RATE = 1_000.0
#: Maximum duration in seconds of a run with a rate. The number of records is limited accordingly.
PACED_S = 20.0


@dataclass(frozen=True)
class BenchOptions:
    """Options of a benchmark. :meth:`check` validates them."""

    modes: tuple[str, ...] = ("produce", "consume")
    #: Brokers; ``None`` starts the embedded broker.
    bootstrap: str | None = None
    peers: tuple[str, ...] = PEERS
    records: int = 500_000
    #: Bytes of a value.
    size: int = 100
    partitions: tuple[int, ...] = (1,)
    codecs: tuple[str, ...] = ("none",)
    #: Records per second; ``None`` sends as fast as possible.
    rate: float | None = None
    profile: str = "tuned"
    acks: str | None = None
    #: Bytes of a batch; ``None`` for the value of the profile.
    batch_size: int | None = None
    linger_ms: float | None = None
    rounds: int = 3
    #: Fraction of a value's bytes that is the same in all values, from 0 to 1.
    compressible: float = 0.5
    warm_up_records: int = 20_000
    #: Class path with Kafka's client jars, for the peer ``java``.
    java_classpath: str | None = None
    #: Whether another thread of the producer's process computes in Python, in a run with a rate.
    has_busy_thread: bool = False
    #: Whether to trace in which stage of a round trip the records are.
    stages: bool = False
    #: Process ID of the broker, if it runs on this machine. Its CPU time is measured too.
    broker_pid: int | None = None
    #: Maximum duration of one run of one client, in seconds.
    run_limit_s: float = 600.0
    #: Security settings of kafkacore's clients for the cluster. They are not part of the result.
    security: ClientSettings = field(default_factory=dict, repr=False)

    def check(self) -> None:
        """Validate the options.

        Raises
        ------
        KafkaConfigurationError
            An option is invalid.
        """
        for name, given, known in (
            ("mode", self.modes, MODES),
            ("peer", self.peers, PEERS),
            ("codec", self.codecs, CODECS),
            ("profile", (self.profile,), PROFILES),
        ):
            if strange := [one for one in given if one not in known]:
                raise KafkaConfigurationError(
                    f"unknown {name} {strange[0]!r}: it must be one of {', '.join(known)}"
                )
        for what, wrong in (
            (f"--size must be at least {NUMBER_BYTES * 2} bytes", self.size < NUMBER_BYTES * 2),
            ("--records must be at least 1", self.records < 1),
            ("--rounds must be at least 1", self.rounds < 1),
            ("--partitions must be at least 1", any(count < 1 for count in self.partitions)),
            ("--rate must be more than 0", self.rate is not None and not self.rate > 0),
            ("--compressible must be between 0 and 1", not 0 <= self.compressible <= 1),
            (
                "--stages requires bench latency and one partition",
                self.stages and (self.modes != ("roundtrip",) or bool(self.peers) or self.partitions != (1,)),
            ),
            ("--linger-ms must be at least 0", self.linger_ms is not None and not self.linger_ms >= 0),
            ("--acks must be 0, 1 or all", self.acks not in (None, "0", "1", "all")),
            (
                "--acks 0 cannot be used with --rate, because without acknowledgements latency is unknown",
                self.acks == "0" and self.rate is not None,
            ),
        ):
            if wrong:
                raise KafkaConfigurationError(what)
        if self.security:
            if self.bootstrap is None:
                raise KafkaConfigurationError(
                    "security settings apply only to a running cluster: set --bootstrap"
                )
            security.check(self.security, bool(self.peers))

    def paced_records(self, rate: float) -> int:
        """Return the number of records that a run with a rate sends."""
        return max(1, min(self.records, int(rate * PACED_S)))

    def to_dict(self) -> dict[str, object]:
        shown = asdict(self)
        security = shown.pop("security")
        return shown | {name: security.get(name) for name in ("security_protocol", "sasl_mechanism")}
