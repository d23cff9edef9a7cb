"""Refusing to make half an object, for Cython callers; see the module."""

cdef int made_only_by(type cls, str maker) except -1
