cimport cython
from libc.stdint cimport int64_t

from bayplan.base cimport go
from bayplan.columns cimport Columns, Rule

cdef class Fit(Rule):
    cdef public int64_t cpu
    @cython.locals(columns=Columns, left=int64_t)
    cpdef int filter(self, Py_ssize_t row) except -1

@cython.locals(rule=Rule, row=Py_ssize_t, total=Py_ssize_t)
cpdef Py_ssize_t failing(list rules, Py_ssize_t size) except -1
