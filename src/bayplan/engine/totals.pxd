cimport cython
from libc.stdint cimport int64_t, uint8_t

from bayplan.engine.select_host cimport BestRows, Sample
from bayplan.engine.filtered_rows cimport FilteredRows
from bayplan.engine.rule_result cimport RuleSet, ScoreResult
from bayplan.state.columns cimport Columns
from bayplan.state.row_log cimport LogReader, RowLog

cdef class Totals:
    cdef public RuleSet rules
    cdef public list weights, scales
    cdef public object total
    cdef BestRows _best
    cdef Columns _columns
    cdef FilteredRows _filtered
    cdef LogReader _changes
    cdef int64_t[::1] _total, _scratch, _weights
    cdef uint8_t[::1] _marks
    cdef list _varying, _levels, _epochs
    cdef RowLog _node_log
    cdef public Py_ssize_t summed, sampled
    cdef Py_ssize_t _node_position
    cdef int64_t _level, _floor, _loaded
    cdef Py_ssize_t _combined, _flips
    cdef bint _stale, _reads_feasible

    @cython.locals(whole=bint)
    cpdef void refresh(self, Sample sample=*) except *
    cpdef tuple best(self, Sample sample=*)
    @cython.locals(moved=bint, changed=bint, same_nodes=bint, result=ScoreResult)
    cdef bint _rescale(self, uint8_t[::1] feasible, bint same) except -1
    @cython.locals(number=Py_ssize_t, result=ScoreResult, weight=int64_t)
    cdef void _sum_all(self) except *
    @cython.locals(level=int64_t, row=Py_ssize_t, score=int64_t, result=ScoreResult)
    cdef int64_t _begin_sum(self) except? -9223372036854775807
    @cython.locals(loaded=int64_t, after=int64_t, score=int64_t, number=Py_ssize_t, result=ScoreResult)
    cdef void _sum_rows(self, Py_ssize_t[::1] rows, Py_ssize_t count) except *
    @cython.locals(result=ScoreResult)
    cdef bint _rescales_samples(self) except -1
    cdef uint8_t[::1] _mark(self, Sample sample)
    @cython.locals(number=Py_ssize_t, result=ScoreResult, weight=int64_t)
    cdef void _sum_sample(self, Sample sample) except *
