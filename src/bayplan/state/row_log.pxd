cimport cython

cdef class RowLog:
    cdef Py_ssize_t _limit
    cdef Py_ssize_t[::1] _rows
    cdef public Py_ssize_t start
    cdef public Py_ssize_t end
    cdef object __weakref__

    cpdef void append(self, Py_ssize_t row) except *
    @cython.locals(first=Py_ssize_t, number=Py_ssize_t)
    cpdef void copy_from(self, Py_ssize_t position, Py_ssize_t[::1] rows) except *
    cpdef list since(self, Py_ssize_t position)
    cdef void _make_room(self) except *

cdef class LogReader:
    cdef RowLog _log
    cdef Py_ssize_t _position
    cdef public Py_ssize_t[::1] rows

    cpdef void skip(self) except *
    @cython.locals(log=RowLog, position=Py_ssize_t)
    cpdef Py_ssize_t take(self, Py_ssize_t limit) except -2
