"""Declare the conversion of Arrow lists to headers for `_source`."""

from kafkacore.record._arrow_table cimport ArrowColumn
from kafkacore.record._gather cimport HeaderColumns

cdef int import_headers(ArrowColumn source, HeaderColumns *out, list owners) except -1
