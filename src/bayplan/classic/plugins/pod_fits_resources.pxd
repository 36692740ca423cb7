cimport cython
from libc.stdint cimport int64_t, uint8_t

from bayplan.base cimport go
from bayplan.framework.rule cimport FilterRule
from bayplan.state.columns cimport Columns

# Constants of the module, typed as C numbers.
cdef Py_ssize_t POD_COUNT, FIRST_RESOURCE

cdef class ResourceShortage(FilterRule):
    cdef list _sets
    cdef Py_ssize_t _count
    cdef Py_ssize_t[::1] _numbers
    cdef int64_t[::1] _amounts
    cdef uint8_t[::1] _short

    @cython.locals(columns=Columns, verdict=int, place=Py_ssize_t, number=Py_ssize_t)
    cpdef int filter(self, Py_ssize_t row) except -1
    cdef int _number(self) except -1
