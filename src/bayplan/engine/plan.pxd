cimport cython
from libc.stdint cimport int64_t, uint8_t, uint16_t

from bayplan.engine.rule_result cimport FilterResult, ScoreResult
from bayplan.framework.rule cimport ScoreRule
from bayplan.state.columns cimport Columns
from bayplan.state.row_log cimport RowLog

# Constants of the .py, as C numbers.
cdef Py_ssize_t BLOCK

cdef class Plan:
    cdef public dict specs
    cdef public object profile, pod, state, footprint, pod_class, owned_counters, priority, pre, failure, history, nominated, dry_run
    cdef public Columns columns
    cdef object _results, _pre_filters, _pre_scores
    cdef RowLog _node_log, _usage_log, _ports_log
    cdef public list filter_parts, score_parts, weights, scales
    cdef public object feasible, total
    cdef public Py_ssize_t feasible_count
    cdef uint8_t[::1] _feasible, _examined, _block_stale
    cdef int64_t[::1] _total, _block_best, _scratch
    cdef Py_ssize_t[::1] _block_count
    cdef Py_ssize_t _capacity
    cdef object _pre_seen, _filters_skipped, _narrowed_to, _pre_score_seen, _scores_skipped
    cdef list _filter_params, _observing_filters, _filter_epochs, _score_params, _observing_scores, _score_epochs, _varying, _varying_numbers, _failing
    cdef int64_t[::1] _varying_weights
    cdef bint _has_errors, _has_custom_scores, _totals_stale, _scales_stale, _all_blocks_stale
    cdef Py_ssize_t _filter_node_position, _filter_usage_position, _filter_ports_position
    cdef Py_ssize_t _total_usage_position, _total_ports_position
    cdef int64_t _level
    cdef object _recorded
    cdef list _recorded_epochs
    cdef object __weakref__

    @cython.locals(
        whole=bint, number=Py_ssize_t, position=Py_ssize_t, result=FilterResult, usage_log=RowLog, ports_log=RowLog,
        usage_start=Py_ssize_t, ports_start=Py_ssize_t,
    )
    cpdef void refresh_filters(self) except *
    cdef bint _choose_filters(self) except -1
    @cython.locals(
        columns=Columns, feasible=uint8_t[::1], examined=uint8_t[::1], codes=uint16_t[::1],
        row=Py_ssize_t, number=Py_ssize_t, count=Py_ssize_t, result=FilterResult,
    )
    cdef void _combine_filters(self) except *
    @cython.locals(passes=bint, number=Py_ssize_t, result=FilterResult)
    cdef void _combine_row(self, Py_ssize_t row) except *
    @cython.locals(number=Py_ssize_t, result=FilterResult)
    cpdef tuple first_failure_at(self, Py_ssize_t row)

    @cython.locals(
        whole=bint, moved=bint, number=Py_ssize_t, position=Py_ssize_t, result=ScoreResult, usage_log=RowLog,
        ports_log=RowLog, usage_start=Py_ssize_t, ports_start=Py_ssize_t,
    )
    cpdef void refresh_scores(self) except *
    @cython.locals(moved=bint, stale=bint, number=Py_ssize_t, result=ScoreResult)
    cdef bint _rescale(self, bint whole) except -1
    @cython.locals(
        columns=Columns, feasible=uint8_t[::1], total=int64_t[::1], scratch=int64_t[::1],
        values=int64_t[::1], row=Py_ssize_t, number=Py_ssize_t, count=Py_ssize_t, result=ScoreResult,
        level=int64_t, weight=int64_t,
    )
    cdef void _sum_up(self) except *
    @cython.locals(alive=uint8_t[::1], row=Py_ssize_t, raw=int64_t)
    cdef int64_t _normalized_level(self, ScoreResult result, object scale) except? -9223372036854775807
    @cython.locals(
        worth=int64_t, score=int64_t, before=int64_t, number=Py_ssize_t, block=Py_ssize_t, result=ScoreResult,
    )
    cdef void _sum_row(self, Py_ssize_t row) except *
    @cython.locals(blocks=Py_ssize_t, block=Py_ssize_t, ties=Py_ssize_t, highest=int64_t)
    cpdef tuple best(self)
    @cython.locals(
        total=int64_t[::1], best=int64_t, count=Py_ssize_t, start=Py_ssize_t, end=Py_ssize_t, row=Py_ssize_t,
    )
    cdef void _refresh_block(self, Py_ssize_t block) except *
    @cython.locals(block=Py_ssize_t, row=Py_ssize_t)
    cpdef Py_ssize_t nth_best(self, int64_t highest, Py_ssize_t number) except -1
    @cython.locals(
        total=int64_t[::1], rows=Py_ssize_t[::1], place=Py_ssize_t, count=Py_ssize_t, highest=int64_t,
    )
    cpdef tuple score_sample(self, object sample)
    @cython.locals(
        found=int64_t[::1], rows=Py_ssize_t[::1], chosen=uint8_t[::1], raw=int64_t[::1],
        values=int64_t[::1], place=Py_ssize_t, count=Py_ssize_t, number=Py_ssize_t, row=Py_ssize_t,
        result=ScoreResult, rule=ScoreRule, weight=int64_t,
    )
    cdef object _totals_of_sample(self, object sample)
