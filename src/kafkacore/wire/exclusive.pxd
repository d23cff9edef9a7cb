"""Reject a second call to an object whose memory is in use, from another thread or from a callback."""

cdef inline int check_unused(bint in_use, object owner) except -1:
    """Raise RuntimeError if ``owner`` is in use."""
    if in_use:
        raise RuntimeError(
            f"this {type(owner).__name__} is in use by another call; give each thread its own"
        )
    return 0


cdef inline int begin_use(bint *in_use, object owner) except -1:
    """Mark ``owner`` as in use; the caller sets ``in_use`` to False at the end. Needs the GIL."""
    check_unused(in_use[0], owner)
    in_use[0] = True
    return 0
