cimport cython
from libc.stdint cimport int64_t, uint8_t

from bayplan.engine.nominated_pods cimport NominatedPods
from bayplan.engine.what_if cimport ChangedRows
from bayplan.engine.plan cimport Plan
from bayplan.engine.what_if cimport Trial

# Constants of the module, typed as C numbers.
cdef int64_t _PASSES

cdef class FirstFailures:
    cdef Plan _plan
    cdef ChangedRows _changed_rows
    cdef Trial _trial
    cdef public object values, feasible, examined
    cdef public dict counts, overrides
    cdef int64_t[::1] _values
    cdef uint8_t[::1] _feasible, _examined
    cdef public Py_ssize_t evaluated_rows, full_passes

    @cython.locals(rows=list, row=Py_ssize_t)
    cpdef void refresh(self, NominatedPods nominated) except *
    @cython.locals(plan=Plan, before=int64_t, value=int64_t, rows=Py_ssize_t, row=Py_ssize_t)
    cdef void _evaluate_all(self) except *
    @cython.locals(value=int64_t, own=int64_t, before=int64_t, counting=int64_t)
    cdef void _evaluate(self, Py_ssize_t row, NominatedPods nominated) except *
    cdef void _count(self, int64_t value, Py_ssize_t difference) except *
