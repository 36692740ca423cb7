cimport cython
from libc.stdint cimport int64_t

from bayplan.engine.changed_rows cimport ChangedRows
from bayplan.engine.plan cimport Plan
from bayplan.engine.what_if cimport Trial
from bayplan.state.pod_info cimport PodInfo
from bayplan.state.pod_moves cimport PodMoves

# Constants of the .py, as C numbers.
cdef Py_ssize_t _PASSES
cdef int64_t _OFFSET

cdef class Candidate:
    cdef public Py_ssize_t row, violations
    cdef public list victims
    cdef public int64_t priorities

@cython.locals(count=Py_ssize_t, columns=int64_t[:, ::1], number=Py_ssize_t, candidate=Candidate, first=PodInfo)
cdef object columns_of(list found)
cdef bint is_more_important(PodInfo left, PodInfo right) except -1

cdef class DryRun:
    cdef Plan _plan
    cdef int64_t _priority
    cdef ChangedRows _changed_rows
    cdef list _known, _pods_on
    cdef public Py_ssize_t asked_rows, known_rows
    cdef object _crowd, _budgets
    cdef bint _has_budgets
    cdef Trial _trial
    cdef dict _statuses

    @cython.locals(row=Py_ssize_t, changed=list, safe=list, violating=list, refused=dict)
    cpdef object search(self, object rows, Py_ssize_t wanted, object crowd, object budgets)
    cpdef object victims_on(self, Py_ssize_t row)
    @cython.locals(info=PodInfo, number=Py_ssize_t, place=Py_ssize_t)
    cdef list _potential_victims(self, Py_ssize_t row)
    @cython.locals(
        moves=PodMoves, nominated=list, info=PodInfo, failure=Py_ssize_t, guarded=Py_ssize_t, order=list, victims=list,
        violating=Py_ssize_t, number=Py_ssize_t,
    )
    cdef object _spare(self, Py_ssize_t row, list potential)
    @cython.locals(failure=Py_ssize_t)
    cdef Py_ssize_t _first_failure(self, Py_ssize_t row, list nominated) except -2
