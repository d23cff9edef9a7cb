"""Prevent Python code from creating an uninitialized object of a compiled class."""

cdef int made_only_by(type cls, str maker) except -1
