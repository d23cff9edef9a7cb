# cython: language_level=3
"""Interrupt Python at the n-th line that it executes, by a real SIGINT.

An exception raised by a trace function would also occur where Python runs no signal handlers, such as between
``with`` and the entry of its context manager. The test that uses this module compiles it.
"""


cdef extern from *:
    """
    static int kc_trace(PyObject *self, PyFrameObject *frame, int what, PyObject *arg);
    static void kc_start(void) { PyEval_SetTrace(kc_trace, NULL); }
    static void kc_stop(void) { PyEval_SetTrace(NULL, NULL); }
    static const char *kc_file(PyCodeObject *code) { return PyUnicode_AsUTF8(code->co_filename); }
    static const char *kc_name(PyCodeObject *code) { return PyUnicode_AsUTF8(code->co_name); }

    static long kc_target, kc_seen;
    static const char *kc_package;
    static char kc_where[512];

    static int kc_trace(PyObject *self, PyFrameObject *frame, int what, PyObject *arg) {
        if (what != PyTrace_LINE) return 0;
        PyCodeObject *code = PyFrame_GetCode(frame);
        const char *file = kc_file(code);
        if (strncmp(file, kc_package, strlen(kc_package)) == 0 && ++kc_seen == kc_target) {
            snprintf(kc_where, sizeof kc_where, "%s:%d %s", file + strlen(kc_package),
                     PyFrame_GetLineNumber(frame), kc_name(code));
            PyErr_SetInterrupt();
            kc_stop();
        }
        Py_DECREF(code);
        return 0;
    }
    """
    void kc_start()
    void kc_stop()
    long kc_target
    long kc_seen
    const char *kc_package
    char *kc_where

cdef bytes _package = b""


def start(str package, long line):
    """From now on count the lines of files under ``package``; the Ctrl-C comes at ``line``, from 1."""
    global _package, kc_package, kc_target, kc_seen
    _package = package.encode()
    kc_package = _package
    kc_target = line
    kc_seen = 0
    kc_where[0] = 0
    kc_start()


def stop():
    """How many lines there were, up to the Ctrl-C if one came."""
    kc_stop()
    return kc_seen


def where():
    """File, line and function of the Ctrl-C."""
    return kc_where.decode()
