cimport cython
from libc.stdint cimport int64_t, uint8_t, uint16_t

from bayplan.state.columns cimport Columns

cdef class Rule:
    cdef public Columns columns
    cdef public object params
    cdef public bint evaluates_arrays, reads_pods, reads_others
    cdef object __weakref__

    cpdef void bind(self) except *
    cpdef bint refresh(self) except -1
    cpdef void after_changes(self, object params) except *
    cpdef void after_undo(self, object params) except *

cdef class FilterRule(Rule):
    cpdef int filter(self, Py_ssize_t row) except -1
    cpdef void filter_all(self, uint16_t[::1] codes) except *
    @cython.locals(row=Py_ssize_t)
    cpdef void filter_rows(self, list rows, uint16_t[::1] codes) except *

cdef class ScoreRule(Rule):
    cdef public bint normalizes
    cdef public bint reads_feasible

    cpdef void prepare(self, uint8_t[::1] feasible) except *
    cpdef int64_t score(self, Py_ssize_t row) except? -9223372036854775807
    cpdef void score_all(self, int64_t[::1] raw) except *
    @cython.locals(row=Py_ssize_t)
    cpdef void score_rows(self, list rows, int64_t[::1] raw) except *
    cpdef tuple scale(self, int64_t[::1] raw, uint8_t[::1] feasible)
    cpdef int64_t level(self, tuple scale) except? -9223372036854775807
    cpdef int64_t normalize(self, tuple scale, int64_t raw, Py_ssize_t row) except? -9223372036854775807
    cpdef void normalize_all(self, tuple scale, int64_t[::1] raw, int64_t[::1] normalized) except *
    cpdef void normalize_rows(
        self, tuple scale, int64_t[::1] raw, Py_ssize_t[::1] rows, Py_ssize_t count, int64_t[::1] normalized
    ) except *
