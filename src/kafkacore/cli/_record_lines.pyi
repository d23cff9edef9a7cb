from collections.abc import Iterable

from kafkacore.consumer._record import ConsumerRecord

def format_records(records: Iterable[ConsumerRecord], parts: tuple[bytes | int, ...], null: bytes) -> bytes:
    """Return the text of all records.

    Parameters
    ----------
    records:
        Records whose keys and values are bytes or ``None``.
    parts:
        Bytes that are copied, and code points of fields: the letters of ``kafkacore consume --format``.
    null:
        Text for a null key, a null value or the null value of a header.
    """

def records_as_json(records: Iterable[ConsumerRecord]) -> bytes:
    """Return a line with a JSON object for each record. ``kafkacore produce --json`` reads such lines.

    Parameters
    ----------
    records:
        Records whose keys and values are bytes or ``None``.
    """
