"""What a benchmark is asked for, checked. Does not know: how it was written on a command line."""

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
#: Records a second of ``roundtrip`` if no rate is given.
ROUNDTRIP_RATE = 1_000.0
#: How long a paced run lasts at most, in seconds; records beyond are left out.
PACED_S = 20.0


@dataclass(frozen=True)
class BenchOptions:
    """Everything that can be chosen; ``check`` says what cannot be."""

    modes: tuple[str, ...] = ("produce", "consume")
    #: ``None`` starts the embedded broker.
    bootstrap: str | None = None
    peers: tuple[str, ...] = PEERS
    records: int = 500_000
    #: Bytes of a value.
    size: int = 100
    partitions: tuple[int, ...] = (1,)
    codecs: tuple[str, ...] = ("none",)
    #: Records a second; ``None`` sends as fast as the client can.
    rate: float | None = None
    profile: str = "tuned"
    acks: str | None = None
    #: In bytes.
    batch_size: int | None = None
    linger_ms: float | None = None
    rounds: int = 3
    #: Share of a value's bytes that is the same in all of them.
    compressible: float = 0.5
    warm_up_records: int = 20_000
    #: Kafka's client jars for the peer ``java``, as a class path.
    java_classpath: str | None = None
    #: Process of the cluster's broker, if it runs here: its processor time is measured too.
    broker_pid: int | None = None
    #: Longest that one run of one client may take, in seconds.
    run_limit_s: float = 600.0
    #: Of the running cluster: how our clients reach it. It is shown nowhere.
    security: ClientSettings = field(default_factory=dict, repr=False)

    def check(self) -> None:
        """Refuse what cannot be measured.

        Raises
        ------
        KafkaConfigurationError
            With the sentence for the user.
        """
        for name, given, known in (
            ("mode", self.modes, MODES),
            ("peer", self.peers, PEERS),
            ("codec", self.codecs, CODECS),
            ("profile", (self.profile,), PROFILES),
        ):
            if strange := [one for one in given if one not in known]:
                raise KafkaConfigurationError(f"there is no {name} {strange[0]!r}: {', '.join(known)}")
        for what, wrong in (
            (f"--size must be at least {NUMBER_BYTES * 2} bytes", self.size < NUMBER_BYTES * 2),
            ("--records must be at least 1", self.records < 1),
            ("--rounds must be at least 1", self.rounds < 1),
            ("--partitions must be at least 1", any(count < 1 for count in self.partitions)),
            ("--rate must be more than 0", self.rate is not None and not self.rate > 0),
            ("--compressible must be between 0 and 1", not 0 <= self.compressible <= 1),
            ("--linger-ms must be at least 0", self.linger_ms is not None and not self.linger_ms >= 0),
            ("--acks must be 0, 1 or all", self.acks not in (None, "0", "1", "all")),
            (
                "--acks 0 with --rate: nothing is acknowledged, so there is no latency",
                self.acks == "0" and self.rate is not None,
            ),
        ):
            if wrong:
                raise KafkaConfigurationError(what)
        if self.security:
            if self.bootstrap is None:
                raise KafkaConfigurationError(
                    "a secure connection is one to a running cluster: say --bootstrap, too"
                )
            security.check(self.security, bool(self.peers))

    def paced_records(self, rate: float) -> int:
        """How many records a paced run sends."""
        return max(1, min(self.records, int(rate * PACED_S)))

    def to_dict(self) -> dict[str, object]:
        shown = asdict(self)
        security = shown.pop("security")
        return shown | {name: security.get(name) for name in ("security_protocol", "sasl_mechanism")}
