/* The value of a record as a bytes object that is filled anew while nobody else holds it, and as a member. */
#ifndef KAFKACORE_BYTES_IMPL_H
#define KAFKACORE_BYTES_IMPL_H

#include <Python.h>
#include <string.h>
#include <structmember.h>

/* The interpreter reads a member of this type by its place, once it has seen it. */
static PyMemberDef kc_value_member = {"value", T_OBJECT_EX, 0, READONLY, "``bytes`` or ``None``."};

/* Objects are allocated in steps of 16 bytes; what is left of the step is used too. */
static inline Py_ssize_t kc_bytes_capacity(Py_ssize_t size) {
    const Py_ssize_t overhead = (Py_ssize_t)offsetof(PyBytesObject, ob_sval) + 1;
    return ((overhead + size + 15) & ~(Py_ssize_t)15) - overhead;
}

/* Put `size` bytes (-1: None) into `slot`, which holds nothing, None or bytes that this function made with `capacity`.
 * Bytes that the slot alone holds are overwritten: no one can tell, and it saves giving memory back and taking it. 0,
 * or -1 with MemoryError set; then the slot is as it was. */
static inline int kc_refill_bytes(PyObject **slot, Py_ssize_t *capacity, const uint8_t *data, Py_ssize_t size) {
    PyObject *old = *slot, *made;
    /* What is far larger than needed is let go, for the user may keep this one. */
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
        /* There is one object for each of these, shared by all. */
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
