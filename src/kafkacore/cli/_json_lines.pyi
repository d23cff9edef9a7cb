def usual_record(
    line: bytes,
) -> tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int | None] | None:
    r"""Return the value, the key, the headers and the timestamp of a line.

    Returns
    -------
    tuple | None
        ``(value, key, headers, timestamp_ms)``, or ``None`` if the line has another form: if it is not an
        object whose fields are texts, null or whole numbers and a list of headers, if it has escapes such as
        ``\u00e9``, or if a field occurs twice.
    """
