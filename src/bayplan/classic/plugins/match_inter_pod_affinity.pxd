cimport cython

from bayplan.classic.plugins.pod_changes cimport CountingRule
from bayplan.state.counters cimport DomainTable

cdef int _EXISTING, _AFFINITY, _ANTI_AFFINITY

cdef class RequiredTerms(CountingRule):
    cdef object _spec, _cluster
    cdef list _affinity_tables, _anti_affinity_tables, _existing_tables
    cdef bint _matches_itself, _first_of_group
    cdef Py_ssize_t _version, _tables_version

    @cython.locals(tables_version=Py_ssize_t, first=bint, tables=list, table=DomainTable)
    cpdef bint refresh(self) except -1
    @cython.locals(table=DomainTable)
    cpdef int filter(self, Py_ssize_t row) except -1
