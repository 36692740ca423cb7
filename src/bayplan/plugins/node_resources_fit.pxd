cimport cython
from libc.stdint cimport int64_t, uint16_t

from bayplan.base cimport go
from bayplan.framework.rule cimport FilterRule
from bayplan.state.columns cimport Columns

cdef Py_ssize_t POD_COUNT, FIRST_RESOURCE, CHUNK
cdef int64_t UNRESOLVABLE_BIT, TOO_MANY_PODS
cdef int MAX_FLAGS

cdef class Request:
    cdef readonly str name
    cdef readonly Py_ssize_t number
    cdef readonly int64_t amount, flag

cdef class FreeResourcesRule(FilterRule):
    cdef tuple _requests
    cdef dict _numbered
    cdef list _delegated
    cdef object _seen

    cpdef bint refresh(self) except -1
    @cython.locals(columns=Columns, verdict=int)
    cpdef int filter(self, Py_ssize_t row) except -1
    @cython.locals(columns=Columns, start=Py_ssize_t, i=Py_ssize_t)
    cpdef void filter_all(self, uint16_t[::1] codes) except *
    @cython.locals(request=Request, columns=Columns, amount=int64_t, flag=int64_t, delegated=bint, i=Py_ssize_t)
    cdef void _add_lacking(self, Py_ssize_t place, Py_ssize_t start, Py_ssize_t length) except *
    @cython.locals(columns=Columns)
    cdef int _number(self, Py_ssize_t row) except -1

cdef inline int64_t flag_on_row(Columns columns, Request request, bint delegated, Py_ssize_t row) noexcept

cdef inline int64_t insufficient_flag(int64_t amount, int64_t flag, bint delegated, int64_t allocatable, int64_t used) noexcept
