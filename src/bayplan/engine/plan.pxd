cimport cython

from bayplan.engine.filtered_rows cimport FilteredRows
from bayplan.engine.preparation cimport PreparationOutcome, PreFilters, PreScores
from bayplan.engine.select_host cimport Sample
from bayplan.engine.totals cimport Totals
from bayplan.framework.profile cimport Profile
from bayplan.state.cluster_state cimport ClusterState

cdef class Plan:
    cdef public dict specs, histories
    cdef public ClusterState state
    cdef public Profile profile
    cdef public object pod, footprint, pod_class, owned_counters, priority, failure, first_failed, dry_run
    cdef public PreparationOutcome pre
    cdef public PreFilters pre_filters
    cdef public PreScores pre_scores
    cdef public FilteredRows filtered
    cdef public Totals totals
    cdef public bytes signature
    cdef public tuple signing, reserve, pre_bind
    cdef public bint signed
    cdef object _shared, _filters_skipped, _scores_skipped
    cdef PreparationOutcome _pre_seen, _pre_score_seen
    cdef bint _has_custom_scores
    cdef object __weakref__

    cpdef PreparationOutcome run_pre_filter_plugins(self, object cycle_state)
    cdef void _choose_filters(self) except *
    cpdef void refresh_filters(self) except *
    cpdef void refresh_scores(self, Sample sample=*) except *
    cdef bint _choose_scores(self, PreparationOutcome outcome) except -1
