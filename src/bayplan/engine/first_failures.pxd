cimport cython
from libc.stdint cimport int64_t, uint8_t, uint16_t

from bayplan.engine.nominated_pods cimport NominatedPods
from bayplan.engine.what_if cimport ChangedRows
from bayplan.engine.plan cimport Plan
from bayplan.engine.rule_result cimport FilterResult
from bayplan.engine.what_if cimport Trial
from bayplan.state.columns cimport Columns

# Constants of the .py, as C numbers.
cdef int64_t _PASSES

cdef class FirstFailures:
    cdef Plan _plan
    cdef ChangedRows _changed_rows
    cdef Trial _trial
    cdef public object values, feasible, examined
    cdef public dict counts, overrides, shut
    cdef int64_t[::1] _values
    cdef uint8_t[::1] _feasible, _examined
    cdef public Py_ssize_t evaluated_rows, full_passes

    @cython.locals(rows=list, row=Py_ssize_t)
    cpdef void refresh(self, NominatedPods nominated) except *
    @cython.locals(
        values=int64_t[::1], examined=uint8_t[::1], codes=uint16_t[::1], result=FilterResult,
        columns=Columns, parts=list, row=Py_ssize_t, number=Py_ssize_t, last=int64_t, run=Py_ssize_t,
    )
    cdef void _ask_all(self) except *
    @cython.locals(parts=list, number=Py_ssize_t, result=FilterResult)
    cdef int64_t _own(self, Py_ssize_t row) except? -2
    @cython.locals(value=int64_t, own=int64_t, before=int64_t, counting=int64_t)
    cdef void _evaluate(self, Py_ssize_t row, NominatedPods nominated) except *
    cdef void _count(self, int64_t value, Py_ssize_t difference) except *
