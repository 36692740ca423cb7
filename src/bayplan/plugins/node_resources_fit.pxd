cimport cython
from libc.stdint cimport int64_t, uint8_t

from bayplan.base cimport go
from bayplan.framework.rule cimport FilterRule
from bayplan.state.columns cimport Columns

# Constants of the .py, as C numbers.
cdef Py_ssize_t POD_COUNT, FIRST_RESOURCE

cdef class Room(FilterRule):
    cdef dict _numbered
    cdef Py_ssize_t _count
    cdef Py_ssize_t[::1] _numbers
    cdef int64_t[::1] _amounts, _flags
    cdef uint8_t[::1] _delegated
    cdef object _seen

    @cython.locals(place=Py_ssize_t)
    cpdef bint refresh(self) except -1
    @cython.locals(
        columns=Columns, verdict=int, short=bint, place=Py_ssize_t, number=Py_ssize_t, amount=int64_t, allocatable=int64_t,
    )
    cpdef int filter(self, Py_ssize_t row) except -1
    @cython.locals(
        columns=Columns, place=Py_ssize_t, number=Py_ssize_t, amount=int64_t, allocatable=int64_t, lacks=bint,
    )
    cdef int _number(self, Py_ssize_t row, int verdict) except -1
