"""Known defects of other implementations; docs/measured/security.md lists all of them."""

from __future__ import annotations

import re
import struct
import tomllib
import tracemalloc
from pathlib import Path

import pytest
from fuzz.message_targets import golden, read_request, read_response, request_frame, response_frame
from model.dose import dose
from model.golden_messages import GoldenMessage
from model.records_v2 import ModelBatch, ModelRecord, encode_batch

from kafkacore.broker.log._validation import validate_append
from kafkacore.broker.log.config import LogConfig
from kafkacore.errors import CorruptRecordError, InvalidReceiveError, InvalidRecordError, KafkaProtocolError
from kafkacore.network import FrameReader
from kafkacore.network.other_protocols import spoken_protocol
from kafkacore.record import ColumnBuilder, read_batches
from kafkacore.structs import TopicPartition

PROJECT = Path(__file__).resolve().parents[2]
#: Maximum bytes of memory that reading takes in addition to eight times its input.
BESIDE = 64 * 1024
#: Very large counts and lengths: int32, compact, and of a string.
CLAIMS = (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07", b"\x7f\xff", b"\xff\xff\xff\xfe", b"\x00\xff\xff\xff")
RECORD = ModelRecord(0, 0, b"key", b"value", [])


def memory_taken(action, *arguments: object) -> int:
    """Return the peak of Python's memory during ``action``, whether or not it refuses the input."""
    tracemalloc.start()
    try:
        action(*arguments)
    except KafkaProtocolError:
        pass
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return peak


@pytest.mark.parametrize("api_key", sorted({message.api_key for message in golden()}))
def test_cve_2022_34917_no_count_takes_memory_before_its_bytes_are_there(api_key: int) -> None:
    """Put a huge count or length at each byte of each message: no memory may be allocated for it."""
    full = [message for message in golden() if message.api_key == api_key and message.variant == "full"]
    newest = {message.kind: message for message in full}
    for message in full if dose(False, True) else newest.values():
        claim_everywhere(message)


def claim_everywhere(message: GoldenMessage) -> None:
    is_request = message.kind == "request"
    frame = request_frame(message) if is_request else response_frame(message)
    read = read_request if is_request else read_response
    read(frame)
    for at in range(8, len(frame), dose(max(len(frame) // 25, 1), 1)):
        for claim in CLAIMS:
            data = frame[:at] + claim + frame[at + len(claim) :]
            peak = memory_taken(read, data)
            assert peak <= 8 * len(data) + BESIDE, f"{peak} bytes for {data.hex()}"


@pytest.mark.parametrize("alert", [b"\x15\x03\x03\x00\x02\x02\x46", b"\x15\x03\x01\x00\x02\x02\x28"])
def test_kafka_4090_tls_alert_is_no_frame_of_352_megabytes(alert: bytes) -> None:
    reader = FrameReader("broker", 100_000_000)

    def feed() -> None:
        with pytest.raises(InvalidReceiveError) as caught:
            reader.feed(alert)
        assert 352_000_000 < caught.value.frame_size < 353_000_000
        assert spoken_protocol(caught.value.frame_size) == "TLS"

    assert memory_taken(feed) <= BESIDE


@pytest.mark.parametrize("size", [-(2**31), -1, 101, 2**31 - 1])
def test_cve_2026_10142_length_of_a_frame_is_checked_before_anything_is_taken_for_it(size: int) -> None:
    reader = FrameReader("peer", 100)

    def feed() -> None:
        with pytest.raises(InvalidReceiveError, match=f"a frame of {size} bytes"):
            reader.feed(struct.pack(">i", size) + b"some bytes")

    assert memory_taken(feed) <= BESIDE


def whole(batch: ModelBatch) -> bytes:
    return encode_batch([RECORD], batch)


@pytest.mark.parametrize("count", [-1, -(2**31), 0, 2, 2**31 - 1])
def test_minus_one_and_other_lies_are_no_count_of_records(count: int) -> None:
    data = whole(ModelBatch(record_count=count, last_offset_delta=max(count - 1, 0)))

    def read() -> None:
        with pytest.raises(CorruptRecordError):
            list(next(read_batches(data, True)))
        with pytest.raises(CorruptRecordError):
            ColumnBuilder(["offset"]).append(next(read_batches(data, True)))

    if count != 0:
        assert memory_taken(read) <= BESIDE
    with pytest.raises((CorruptRecordError, InvalidRecordError)):
        validate_append(memoryview(bytearray(data)), LogConfig(), 0, TopicPartition("t", 0))


def test_small_batch_with_a_huge_last_offset_delta_takes_no_gigabytes() -> None:
    data = whole(ModelBatch(record_count=1, last_offset_delta=2**31 - 1))

    def read() -> None:
        (batch,) = read_batches(data)
        assert [record.offset for record in batch] == [0]
        assert batch.next_offset == 2**31
        builder = ColumnBuilder(["offset", "value"])
        assert builder.append(batch) == (1, 2**31)
        assert builder.nbytes < BESIDE

    assert memory_taken(read) <= BESIDE
    with pytest.raises(InvalidRecordError, match="2147483648 offsets has 1 record"):
        validate_append(memoryview(bytearray(data)), LogConfig(), 0, TopicPartition("t", 0))


def test_every_named_defect_has_its_test() -> None:
    results = tomllib.loads((PROJECT / "bench" / "results" / "reliability.toml").read_text(encoding="utf-8"))
    assert len(results["defect"]) >= 13
    for row in results["defect"]:
        path, _, test = row["test"].partition("::")
        assert f"def {test}(" in (PROJECT / path).read_text(encoding="utf-8"), row["what"]


def test_files_that_the_pages_name_exist() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in (PROJECT / "docs" / "measured").glob("*.md"))
    named = set(re.findall(r"(?:tests|bench)/[\w/]+\.(?:py|md)", text))
    assert len(named) > 40
    assert [name for name in sorted(named) if not (PROJECT / name).is_file()] == []
