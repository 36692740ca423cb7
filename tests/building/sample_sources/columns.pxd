from libc.stdint cimport int64_t

from bayplan.base cimport go

cdef int64_t _FACTOR

cdef class Columns:
    cdef readonly Py_ssize_t size
    cdef public int64_t[::1] free
    cdef int64_t hidden
    cdef object __weakref__
    cpdef int64_t share(self, Py_ssize_t row, int64_t parts=*) except? -1

cdef class Rule:
    cdef public Columns columns
    cpdef int filter(self, Py_ssize_t row) except -1
