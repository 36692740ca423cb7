cimport cython

from bayplan.state.row_log cimport RowLog

cdef class LogReader:
    cdef list _logs, _positions
    cdef public Py_ssize_t[::1] rows

    @cython.locals(log=RowLog, number=Py_ssize_t)
    cpdef bint is_current(self) except -1
    @cython.locals(log=RowLog, number=Py_ssize_t)
    cpdef void skip(self) except *
    @cython.locals(
        log=RowLog, number=Py_ssize_t, missed=Py_ssize_t, reached=bint, start=Py_ssize_t, found=Py_ssize_t, rows=Py_ssize_t[::1],
        position=Py_ssize_t,
    )
    cpdef Py_ssize_t take(self, Py_ssize_t limit) except -2
