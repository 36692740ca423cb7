cimport cython

from bayplan.state.columns cimport Columns
from bayplan.state.object_catalog cimport ObjectCatalog
from bayplan.state.row_log cimport RowLog

# Constants of the module, typed as C numbers.
cdef int _NODES, _COUNTERS, _CATALOG, _NEW_SPEC, _ALWAYS

cdef class PreparationOutcome:
    cdef public object status, node_names
    cdef public list narrowed_by
    cdef public dict params
    cdef public set skipped
    cdef public tuple unreached, records

cdef class PreparedPlugins:
    cdef object _state, _reads_of
    cdef ObjectCatalog _catalog
    cdef RowLog _node_log
    cdef Columns _columns
    cdef list _plugins, _specs, _answers, _reads
    cdef int _all_reads
    cdef PreparationOutcome _outcome
    cdef Py_ssize_t _first_observer, _node_position, _writes, _counted, _run_count

    cpdef void adapt(self, object specs) except *
    @cython.locals(changes=int, changed=Py_ssize_t, known=PreparationOutcome, outcome=PreparationOutcome)
    cpdef PreparationOutcome refresh(self, object argument)
    @cython.locals(reads=int)
    cdef Py_ssize_t _first_changed(self, int changes, object argument) except -2
    @cython.locals(outcome=PreparationOutcome, number=Py_ssize_t, reads=int)
    cdef PreparationOutcome _combine(self, Py_ssize_t first, int changes, object argument)
    cdef object _run(self, Py_ssize_t number, object argument)
    cdef bint _merge(self, PreparationOutcome outcome, object plugin, object answer) except -1

cdef class PreFilters(PreparedPlugins):
    cdef object _run(self, Py_ssize_t number, object argument)
    cdef bint _merge(self, PreparationOutcome outcome, object plugin, object answer) except -1

cdef class PreScores(PreparedPlugins):
    cdef readonly bint reads_feasible

    cdef object _run(self, Py_ssize_t number, object argument)
    cdef bint _merge(self, PreparationOutcome outcome, object plugin, object answer) except -1
