cimport cython

from bayplan.state.row_log cimport RowLog

cdef class PreFilterOutcome:
    cdef public object status, node_names
    cdef public list narrowed_by
    cdef public dict params
    cdef public set skipped

cdef class PreparedPlugins:
    cdef object _state
    cdef RowLog _node_log
    cdef list _plugins, _dynamic, _answers, _stale

    @cython.locals(number=Py_ssize_t)
    cpdef void adapt(self, object specs) except *
    cdef bint _is_dynamic(self, object plugin, object spec) except -1
    cpdef object reads(self, object plugin, object spec)

cdef class PreFilters(PreparedPlugins):
    cdef object _said
    cdef PreFilterOutcome _outcome
    cdef Py_ssize_t _asked, _node_position

    cpdef object reads(self, object plugin, object spec)
    @cython.locals(outcome=PreFilterOutcome)
    cpdef PreFilterOutcome run(self, object cycle_state)
    @cython.locals(position=Py_ssize_t, number=Py_ssize_t)
    cdef PreFilterOutcome _bring_up_to_date(self, object cycle_state)
    @cython.locals(number=Py_ssize_t)
    cdef void _drop_stale(self, Py_ssize_t first) except *
    @cython.locals(outcome=PreFilterOutcome, number=Py_ssize_t)
    cdef PreFilterOutcome _fold(self, Py_ssize_t known, object cycle_state)

cdef class PreScoreOutcome:
    cdef public dict params
    cdef public set skipped
    cdef public object failure

cdef class PreScores(PreparedPlugins):
    cdef object _said
    cdef PreScoreOutcome _outcome
    cdef Py_ssize_t _node_position
    cdef readonly bint reads_feasible

    cpdef object reads(self, object plugin, object spec)
    @cython.locals(position=Py_ssize_t, known=bint, changed=bint, number=Py_ssize_t)
    cpdef PreScoreOutcome run(self, object feasible)
    @cython.locals(outcome=PreScoreOutcome)
    cdef PreScoreOutcome _fold(self)
