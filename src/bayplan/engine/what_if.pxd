cimport cython

from bayplan.engine.nominated_pods cimport NominatedPods
from bayplan.engine.plan cimport Plan
from bayplan.engine.rule_result cimport FilterResult
from bayplan.state.pod_moves cimport PodMoves
from bayplan.state.row_log cimport LogReader

cdef class Trial:
    cdef Plan _plan
    cdef list _parts
    cdef public PodMoves moves

    @cython.locals(number=Py_ssize_t, part=FilterResult)
    cpdef Py_ssize_t first_failure(self, Py_ssize_t row) except -2
    cpdef Py_ssize_t first_failure_with(self, Py_ssize_t row, object pods) except -2
    @cython.locals(part=FilterResult)
    cpdef void close(self) except *

cdef class ChangedRows:
    cdef Plan _plan
    cdef list _readers
    cdef Py_ssize_t _own_row
    cdef object _version

    @cython.locals(all_rows=bint, part=FilterResult, reader=LogReader)
    cpdef list take(self, NominatedPods nominated, object version=*)
