cimport cython

from bayplan.state.columns cimport Columns
from bayplan.state.row_log cimport RowLog

# Constants of the module, typed as C numbers.
cdef int _NODES, _COUNTERS, _CATALOG, _ALWAYS

cdef class PreFilterOutcome:
    cdef public object status, node_names
    cdef public list narrowed_by
    cdef public dict params
    cdef public set skipped

cdef bint _merge(PreFilterOutcome outcome, object plugin, object answer) except -1

cdef class PreparedPlugins:
    cdef object _state, _catalog, _reads_method
    cdef RowLog _node_log
    cdef Columns _columns
    cdef list _plugins, _reads, _answers, _stale
    cdef int _all_reads
    cdef Py_ssize_t _node_position, _writes, _counted

    @cython.locals(number=Py_ssize_t)
    cpdef void adapt(self, object specs) except *
    cdef int _reads_of(self, object plugin, object spec) except -1
    @cython.locals(reads=int)
    cdef void _sum_reads(self) except *
    @cython.locals(changes=int)
    cdef int _changes(self) except -1

cdef class PreFilters(PreparedPlugins):
    cdef object _recorded
    cdef PreFilterOutcome _outcome
    cdef Py_ssize_t _run_count

    @cython.locals(outcome=PreFilterOutcome)
    cpdef PreFilterOutcome run(self, object cycle_state)
    @cython.locals(changes=int, number=Py_ssize_t, run_count=Py_ssize_t)
    cdef PreFilterOutcome _refresh(self, object cycle_state)
    @cython.locals(number=Py_ssize_t)
    cdef void _drop_stale(self, Py_ssize_t first) except *
    @cython.locals(outcome=PreFilterOutcome, number=Py_ssize_t, run_count=Py_ssize_t)
    cdef PreFilterOutcome _fold(self, Py_ssize_t known, object cycle_state)

cdef class PreScoreOutcome:
    cdef public dict params
    cdef public set skipped
    cdef public object failure

cdef class PreScores(PreparedPlugins):
    cdef object _recorded
    cdef PreScoreOutcome _outcome
    cdef readonly bint reads_feasible

    @cython.locals(changes=int, outcome=PreScoreOutcome, changed=bint, number=Py_ssize_t)
    cpdef PreScoreOutcome run(self, object feasible)
    @cython.locals(outcome=PreScoreOutcome)
    cdef PreScoreOutcome _fold(self)
