"""Declare the functions that convert Arrow lists to headers, for use in `_source`."""

from kafkacore.record._arrow_table cimport ArrowColumn
from kafkacore.record._gather cimport HeaderColumns

cdef int import_headers(ArrowColumn source, HeaderColumns *out, list owners) except -1
