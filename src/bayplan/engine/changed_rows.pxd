cimport cython

from bayplan.engine.plan cimport Plan
from bayplan.engine.rule_result cimport FilterResult
from bayplan.state.row_log cimport RowLog

cdef class ChangedRows:
    cdef Plan _plan
    cdef RowLog _nominations, _usage_log
    cdef Py_ssize_t _nominations_position, _usage_position, _own_row
    cdef object _stamp

    cpdef void forget(self) except *
    @cython.locals(
        plan=Plan, whole=bint, part=FilterResult, nominations=RowLog, usage_log=RowLog,
        nominations_start=Py_ssize_t, usage_start=Py_ssize_t, own_row=Py_ssize_t,
        position=Py_ssize_t, rows=list,
    )
    cpdef list take(self, object crowd, object stamp=*)
