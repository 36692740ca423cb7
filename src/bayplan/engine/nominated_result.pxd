cimport cython
from libc.stdint cimport int64_t

from bayplan.engine.plan cimport Plan
from bayplan.engine.rule_result cimport FilterResult
from bayplan.engine.what_if cimport Trial
from bayplan.state.row_log cimport RowLog

# Constants of the .py, as C numbers.
cdef int64_t _PASSES

cdef class NominatedResult:
    cdef Plan _plan
    cdef RowLog _nominations, _usage_log, _ports_log
    cdef Py_ssize_t _nominations_position, _usage_position, _ports_position, _own_row
    cdef object _stamp
    cdef public object values
    cdef int64_t[::1] _values
    cdef public Py_ssize_t asked_rows, full_passes

    @cython.locals(
        plan=Plan, whole=bint, part=FilterResult, nominations=RowLog, usage_log=RowLog, ports_log=RowLog,
        position=Py_ssize_t, rows=list,
    )
    cpdef void refresh(self, object crowd) except *
    @cython.locals(trial=Trial, values=int64_t[::1], row=Py_ssize_t)
    cdef void _ask(self, list rows, object crowd) except *
