cimport cython
from libc.stdint cimport int64_t, uint8_t, uint16_t

from bayplan.state.row_log cimport LogReader
from bayplan.framework.rule cimport FilterRule, Rule, ScoreRule
from bayplan.state.columns cimport Columns

# Constants of the module, typed as C numbers.
cdef int ERROR_BIT, _UNKNOWN

cdef int _PLACEMENTS, _OBJECTS

cdef class RuleResult:
    cdef public object plugin, name, spec, params, values
    cdef public Rule rule
    cdef public Columns columns
    cdef public Py_ssize_t epoch, evaluated_rows
    cdef public bint incremental, static, shared
    cdef object _state
    cdef bint _interrupted, _refreshes
    cdef LogReader _changes
    cdef Py_ssize_t _version, _capacity
    cdef int _reads
    cdef int64_t _loaded
    cdef object __weakref__

    @cython.locals(read=int)
    cdef void _use(self, object spec, object rule, object reads) except *
    @cython.locals(all_rows=bint, count=Py_ssize_t)
    cpdef void refresh(self, object params, uint8_t[::1] feasible) except *
    cdef bint bind(self) except -1
    cpdef void run_changed(self, Py_ssize_t[::1] rows, Py_ssize_t count) except *

cdef class FilterResult(RuleResult):
    cdef public FilterRule filter_rule
    cdef public uint16_t[::1] codes
    cdef public Py_ssize_t failing
    cdef public bint has_errors

    @cython.locals(failing=cython.int, found=cython.int)
    cdef void _count(self) except *
    @cython.locals(loaded=int64_t, before=cython.int)
    cpdef void run_changed(self, Py_ssize_t[::1] rows, Py_ssize_t count) except *

cdef class ScoreResult(RuleResult):
    cdef public ScoreRule score_rule
    cdef public int64_t[::1] raw
    cdef Py_ssize_t _uniform_row

    cpdef void refresh(self, object params, uint8_t[::1] feasible) except *
    @cython.locals(loaded=int64_t)
    cpdef void run_changed(self, Py_ssize_t[::1] rows, Py_ssize_t count) except *
    cpdef Py_ssize_t uniform_row(self) except -2
    @cython.locals(found=Py_ssize_t)
    cdef Py_ssize_t _find_uniform_row(self) except -2

cdef class RuleSet:
    cdef public list results, params
    cdef RuleResults _shared
    cdef object _point
    cdef Py_ssize_t _epochs
    cdef bint _moved

    @cython.locals(moved=bint, epochs=Py_ssize_t, result=RuleResult)
    cpdef bint refresh(self, uint8_t[::1] feasible) except -1

cdef class RuleResults:
    cdef public object adapted, timer, _known, _state
