"""Prevent Python code from creating an uninitialized object of a compiled class.

Compiled code creates objects by ``cls.__new__(cls)``, which calls the type's slot ``tp_new``, and then sets
the fields. From Python the same expression would return an object full of null pointers.
"""

cdef extern from *:
    ctypedef struct PyTypeObject:
        PyObject *tp_dict
    ctypedef struct PyObject
    int PyDict_SetItemString(object dictionary, const char *key, object value) except -1
    void PyType_Modified(PyTypeObject *type)


cdef int made_only_by(type cls, str maker) except -1:
    """Make ``cls.__new__`` raise TypeError for Python callers. ``cls.__init__`` must raise TypeError too.

    Compiled code is not affected, because it does not look up the attribute ``__new__``.
    """
    def __new__(cls, *args, **kwargs):
        raise TypeError(f"a {cls.__name__} can be created only by {maker}")

    PyDict_SetItemString(<object> (<PyTypeObject *> cls).tp_dict, "__new__", staticmethod(__new__))
    PyType_Modified(<PyTypeObject *> cls)
    return 0
