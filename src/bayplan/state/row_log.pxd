cimport cython

cdef class RowLog:
    cdef Py_ssize_t _limit
    cdef Py_ssize_t[::1] _rows
    cdef public Py_ssize_t start
    cdef public Py_ssize_t end
    cdef object __weakref__

    @cython.locals(length=Py_ssize_t)
    cpdef void append(self, Py_ssize_t row) except *
    @cython.locals(source=Py_ssize_t[::1], entry=Py_ssize_t)
    cpdef Py_ssize_t copy_from(self, Py_ssize_t position, Py_ssize_t[::1] rows, Py_ssize_t place) except -1
    @cython.locals(number=Py_ssize_t)
    cpdef list since(self, Py_ssize_t position)
    cdef void _make_room(self) except *

cdef class LogReader:
    cdef list _logs
    cdef Py_ssize_t[::1] _positions
    cdef public Py_ssize_t[::1] rows

    @cython.locals(number=Py_ssize_t, log=RowLog)
    cpdef void skip(self) except *
    @cython.locals(
        number=Py_ssize_t, log=RowLog, position=Py_ssize_t, missed=Py_ssize_t, reached=bint, found=Py_ssize_t, rows=Py_ssize_t[::1],
    )
    cpdef Py_ssize_t take(self, Py_ssize_t limit) except -2
