"""Constants of layout.h for Python code."""

cimport kafkacore.record.layout as layout

LENGTH_AT = <int> layout.LENGTH_AT
LOG_OVERHEAD = <int> layout.LOG_OVERHEAD
MAGIC_AT = <int> layout.MAGIC_AT
CURRENT_MAGIC = <int> layout.CURRENT_MAGIC
BATCH_OVERHEAD = <int> layout.RECORDS_AT
MAX_FIELDS_OVERHEAD = <int> layout.MAX_FIELDS_OVERHEAD
