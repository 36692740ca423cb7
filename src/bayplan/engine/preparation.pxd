cimport cython

from bayplan.state.columns cimport Columns
from bayplan.state.row_log cimport RowLog

# Constants of the module, typed as C numbers.
cdef int _COUNTERS, _CATALOG, _ALWAYS

cdef class PreFilterOutcome:
    cdef public object status, node_names
    cdef public list narrowed_by
    cdef public dict params
    cdef public set skipped

cdef bint _merge(PreFilterOutcome outcome, object plugin, object answer) except -1

cdef class PreparedPlugins:
    cdef object _state, _catalog, _reads_method, _recorded
    cdef RowLog _node_log
    cdef Columns _columns
    cdef list _plugins, _answers
    cdef int _all_reads
    cdef Py_ssize_t _node_position, _writes, _counted

    cpdef void adapt(self, object specs) except *
    @cython.locals(current=bint)
    cdef bint _is_current(self) except -1

cdef class PreFilters(PreparedPlugins):
    cdef PreFilterOutcome _outcome

    @cython.locals(outcome=PreFilterOutcome)
    cpdef PreFilterOutcome run(self, object cycle_state)
    @cython.locals(outcome=PreFilterOutcome, answers=list, position=Py_ssize_t)
    cdef void _run_all(self, object cycle_state) except *

cdef class PreScoreOutcome:
    cdef public dict params
    cdef public set skipped
    cdef public object failure

cdef class PreScores(PreparedPlugins):
    cdef PreScoreOutcome _outcome
    cdef readonly bint reads_feasible

    @cython.locals(answers=list, position=Py_ssize_t)
    cpdef PreScoreOutcome run(self, object feasible)
    @cython.locals(outcome=PreScoreOutcome)
    cdef PreScoreOutcome _fold(self)
