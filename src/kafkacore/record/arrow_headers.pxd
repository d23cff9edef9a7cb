"""Headers of Arrow data, for `source`; see the module."""

from kafkacore.record.arrow_table cimport ArrowColumn
from kafkacore.record.gather cimport HeaderColumns

cdef int import_headers(ArrowColumn source, HeaderColumns *out, list owners) except -1
