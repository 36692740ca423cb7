cimport cython
from libc.stdint cimport int64_t, uint8_t, uint16_t

from bayplan.framework.rule cimport FilterRule, Rule, ScoreRule
from bayplan.state.columns cimport Columns
from bayplan.state.row_log cimport RowLog

# Constants of the .py, as C numbers.
cdef int ERROR_BIT

cdef class RuleResult:
    cdef public object plugin, name, spec, params, values
    cdef public Rule rule
    cdef public Columns columns
    cdef public Py_ssize_t epoch
    cdef public bint incremental, static
    cdef bint _interrupted, _reads_usage, _reads_ports
    cdef RowLog _node_log, _usage_log, _ports_log
    cdef Py_ssize_t _node_position, _usage_position, _ports_position, _version, _capacity
    cdef object __weakref__

    @cython.locals(columns=Columns, rule=Rule, whole=bint)
    cpdef void bring_up_to_date(self, object params) except *
    cdef void _ask_all(self) except *
    cdef void _note_positions(self) except *
    @cython.locals(
        node_log=RowLog, usage_log=RowLog, ports_log=RowLog, missed=Py_ssize_t, reached=bint, position=Py_ssize_t,
        node_start=Py_ssize_t, usage_start=Py_ssize_t, ports_start=Py_ssize_t,
    )
    cdef void _ask_missed(self) except *
    cpdef void allocate(self) except *
    cpdef void ask_all(self) except *
    cpdef void ask_row(self, Py_ssize_t row) except *
    cpdef void ask_rows(self, list rows) except *

cdef class FilterResult(RuleResult):
    cdef public FilterRule filter_rule
    cdef public uint16_t[::1] codes
    cdef public Py_ssize_t failing
    cdef public bint has_errors

    cpdef void allocate(self) except *
    cpdef void ask_all(self) except *
    @cython.locals(codes=uint16_t[::1], failing=Py_ssize_t, has_errors=bint, row=Py_ssize_t, code=cython.int)
    cdef void _count(self) except *
    @cython.locals(codes=uint16_t[::1], code=cython.int, before=cython.int)
    cpdef void ask_row(self, Py_ssize_t row) except *
    cpdef void ask_rows(self, list rows) except *

cdef class ScoreResult(RuleResult):
    cdef public ScoreRule score_rule
    cdef public int64_t[::1] raw
    cdef bint _uniform_known, _uniform

    @cython.locals(columns=Columns, rule=ScoreRule)
    cpdef void ask_for(self, uint8_t[::1] feasible) except *
    cpdef void allocate(self) except *
    cpdef void ask_all(self) except *
    cpdef void ask_row(self, Py_ssize_t row) except *
    cpdef void ask_rows(self, list rows) except *
    cpdef bint is_uniform(self) except -1
    @cython.locals(raw=int64_t[::1], alive=uint8_t[::1], seen=bint, level=int64_t, row=Py_ssize_t)
    cdef bint _has_one_value(self) except -1
