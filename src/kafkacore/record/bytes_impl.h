/* The value of a record as a bytes object that is reused while only the record refers to it, and as a member. */
#ifndef KAFKACORE_BYTES_IMPL_H
#define KAFKACORE_BYTES_IMPL_H

#include <Python.h>
#include <string.h>
#include <structmember.h>

/* The interpreter specializes reads of a member of this type: it reads the memory directly. */
static PyMemberDef kc_value_member = {"value", T_OBJECT_EX, 0, READONLY, "Value as ``bytes``, or ``None``."};

/* Objects are allocated in multiples of 16 bytes. The capacity includes the rest of the last 16 bytes. */
static inline Py_ssize_t kc_bytes_capacity(Py_ssize_t size) {
    const Py_ssize_t overhead = (Py_ssize_t)offsetof(PyBytesObject, ob_sval) + 1;
    return ((overhead + size + 15) & ~(Py_ssize_t)15) - overhead;
}

/* Set `slot` to a bytes object of `size` bytes, or None if `size` is -1. The slot holds NULL, None, or bytes
 * that this function created with `capacity`. If nothing else refers to those bytes they are overwritten,
 * which saves a deallocation and an allocation. Returns 0, or -1 with MemoryError set and the slot unchanged. */
static inline int kc_refill_bytes(PyObject **slot, Py_ssize_t *capacity, const uint8_t *data, Py_ssize_t size) {
    PyObject *old = *slot, *made;
    /* An object far larger than needed is not reused, because the user may keep this one. */
    if (old != NULL && Py_REFCNT(old) == 1 && size > 1 && size <= *capacity && size >= *capacity / 2) {
        memcpy(PyBytes_AS_STRING(old), data, (size_t)size);
        PyBytes_AS_STRING(old)[size] = 0;
        Py_SET_SIZE(old, size);
        _Py_COMP_DIAG_PUSH
        _Py_COMP_DIAG_IGNORE_DEPR_DECLS
        ((PyBytesObject *)old)->ob_shash = -1;
        _Py_COMP_DIAG_POP
        return 0;
    }
    if (size < 0) {
        made = Py_NewRef(Py_None);
    } else if (size <= 1) {
        /* Python shares one object for each of these values. */
        made = PyBytes_FromStringAndSize((const char *)data, size);
    } else {
        made = PyBytes_FromStringAndSize(NULL, *capacity = kc_bytes_capacity(size));
        if (made != NULL) {
            memcpy(PyBytes_AS_STRING(made), data, (size_t)size);
            PyBytes_AS_STRING(made)[size] = 0;
            Py_SET_SIZE(made, size);
        }
    }
    if (made == NULL) return -1;
    *slot = made;
    Py_XDECREF(old);
    return 0;
}

#endif
