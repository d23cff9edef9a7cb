from libc.stdint cimport int64_t

cdef enum Stage:
    # KafkaProducer.send() was called.
    SEND_CALLED = 1
    # A batch was sealed; the number is that of its records.
    BATCH_SEALED
    # A request was written completely; the number is the first 8 bytes: API key, version and correlation id.
    REQUEST_WRITTEN
    # A thread that waited for the network continues.
    WAIT_ENDED
    # A response was read completely; the number is the correlation id.
    RESPONSE_READ
    # A batch was acknowledged or has failed; the number is the base offset.
    BATCH_COMPLETED

cdef bint is_on

cdef int write_stamp(Stage stage, int64_t number) noexcept


cdef inline int stamp(Stage stage, int64_t number) noexcept:
    """Note that a stage was reached, if a trace is in progress. The GIL protects the stamps."""
    if is_on:
        write_stamp(stage, number)
    return 0
