/* Reads of Python objects without the GIL. The objects are immutable, and the reader holds references to
 * them. */
#ifndef KAFKACORE_OBJECTS_H
#define KAFKACORE_OBJECTS_H

#include <Python.h>
#include <stdint.h>

#define KC_IS_NONE(object) ((object) == Py_None)
#define KC_BYTES_SIZE(object) (((PyVarObject *)(object))->ob_size)
#define KC_BYTES_DATA(object) ((const uint8_t *)((PyBytesObject *)(object))->ob_sval)
#define KC_TUPLE_ITEMS(tuple) (((PyTupleObject *)(tuple))->ob_item)

#endif
