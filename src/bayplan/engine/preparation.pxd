cimport cython

from bayplan.state.row_log cimport RowLog

cdef class PreFilterOutcome:
    cdef public object status, node_names
    cdef public list narrowed_by
    cdef public dict params
    cdef public set skipped

cdef class PreFilters:
    cdef object _state, _said
    cdef RowLog _node_log
    cdef list _plugins, _dynamic, _answers, _stale
    cdef PreFilterOutcome _outcome
    cdef Py_ssize_t _asked, _node_position

    @cython.locals(number=Py_ssize_t)
    cpdef void adapt(self, object specs) except *
    @cython.locals(outcome=PreFilterOutcome)
    cpdef PreFilterOutcome run(self, object cycle_state)
    @cython.locals(position=Py_ssize_t, number=Py_ssize_t)
    cdef PreFilterOutcome _bring_up_to_date(self, object cycle_state)
    @cython.locals(number=Py_ssize_t)
    cdef void _drop_stale(self, Py_ssize_t first) except *
    @cython.locals(outcome=PreFilterOutcome, dynamic=set, number=Py_ssize_t)
    cdef PreFilterOutcome _fold(self, Py_ssize_t known, object cycle_state)

cdef class PreScoreOutcome:
    cdef public dict params
    cdef public set skipped
    cdef public object failure

cdef class PreScores:
    cdef object _state, _said
    cdef RowLog _node_log
    cdef list _plugins, _dynamic, _answers, _stale
    cdef PreScoreOutcome _outcome
    cdef Py_ssize_t _node_position
    cdef readonly bint reads_feasible

    @cython.locals(number=Py_ssize_t)
    cpdef void adapt(self, object specs) except *
    @cython.locals(position=Py_ssize_t, known=bint, changed=bint, number=Py_ssize_t)
    cpdef PreScoreOutcome run(self, object feasible)
    @cython.locals(outcome=PreScoreOutcome)
    cdef PreScoreOutcome _fold(self)
