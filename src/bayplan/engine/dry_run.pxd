cimport cython
from libc.stdint cimport int64_t, uint8_t

from bayplan.engine.nominated_pods cimport NominatedPods
from bayplan.engine.plan cimport Plan
from bayplan.engine.what_if cimport ChangedRows, Trial
from bayplan.framework.preemption cimport shortlist
from bayplan.state.pod_info cimport PodInfo

# Constants of the module, typed as C numbers.
cdef Py_ssize_t PASSES, _NO_VICTIMS
cdef uint8_t _CANDIDATE, _INFEASIBLE

cdef class DryRun:
    cdef Plan _plan
    cdef int64_t _priority
    cdef ChangedRows _changed_rows
    cdef list _found
    cdef uint8_t[::1] _known
    cdef public object table
    cdef int64_t[:, ::1] _table
    cdef public Py_ssize_t evaluated_rows, known_rows
    cdef NominatedPods _nominated
    cdef object _budgets

    @cython.locals(
        row=Py_ssize_t, order=Py_ssize_t[::1], safe=Py_ssize_t[::1], safe_count=Py_ssize_t, evaluated=Py_ssize_t, visited=Py_ssize_t
    )
    cpdef object search(self, object rows, Py_ssize_t start, Py_ssize_t wanted, NominatedPods nominated, object budgets)
    @cython.locals(order=Py_ssize_t[::1], number=Py_ssize_t, row=Py_ssize_t)
    cpdef list _infeasible(self, object rows, Py_ssize_t start, Py_ssize_t visited)
    cdef void _dry_run_row(self, Py_ssize_t row) except *
    @cython.locals(before=PodInfo, info=PodInfo, found=list, number=Py_ssize_t)
    cdef list _potential_victims(self, Py_ssize_t row)
    @cython.locals(nominated=list, info=PodInfo, order=list, victims=list, violating=Py_ssize_t)
    cdef void _reprieve(self, Trial trial, Py_ssize_t row, list potential) except *

cdef Py_ssize_t _first_failure(Trial trial, Py_ssize_t row, list nominated) except -2
