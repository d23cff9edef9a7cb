"""What keeps Python from making half an object of a compiled class.

Compiled code makes objects by ``cls.__new__(cls)``, which calls the type's slot, and fills them in. The same
expression in Python would give an object full of null pointers.
"""

cdef extern from *:
    ctypedef struct PyTypeObject:
        PyObject *tp_dict
    ctypedef struct PyObject
    int PyDict_SetItemString(object dictionary, const char *key, object value) except -1
    void PyType_Modified(PyTypeObject *type)


cdef int made_only_by(type cls, str maker) except -1:
    """Have ``cls.__new__`` refuse Python callers; ``__init__`` must refuse too.

    Compiled code is not affected: it does not look the attribute up.
    """
    def __new__(cls, *args, **kwargs):
        raise TypeError(f"a {cls.__name__} is made by {maker} only")

    PyDict_SetItemString(<object> (<PyTypeObject *> cls).tp_dict, "__new__", staticmethod(__new__))
    PyType_Modified(<PyTypeObject *> cls)
    return 0
