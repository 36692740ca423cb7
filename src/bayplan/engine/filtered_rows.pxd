cimport cython
from libc.stdint cimport int64_t, uint8_t

from bayplan.engine.rule_result cimport FilterResult, RuleSet
from bayplan.state.columns cimport Columns
from bayplan.state.row_log cimport LogReader, RowLog

cdef class FilteredRows:
    cdef public RuleSet rules
    cdef public object feasible
    cdef public uint8_t[::1] flags
    cdef public Py_ssize_t count, combined, flips
    cdef public bint has_errors
    cdef object _state, _node_names
    cdef Columns _columns
    cdef RowLog _node_log
    cdef LogReader _changes
    cdef Py_ssize_t _node_position, _capacity
    cdef uint8_t[::1] _examined

    @cython.locals(whole=bint)
    cpdef void refresh(self, object node_names) except *
    @cython.locals(result=FilterResult)
    cdef void _combine_all(self) except *
    @cython.locals(failing=list, passes=bint, result=FilterResult)
    cdef void _combine_rows(self, Py_ssize_t[::1] rows, Py_ssize_t count) except *
    @cython.locals(failures=int64_t[::1], number=Py_ssize_t, result=FilterResult)
    cpdef object first_failures(self, object skipped=*)
    @cython.locals(number=Py_ssize_t, result=FilterResult)
    cpdef int64_t first_failure_at(self, Py_ssize_t row) except? -2

@cython.locals(value=int64_t, length=Py_ssize_t)
cpdef dict count_failures(int64_t[::1] values)
