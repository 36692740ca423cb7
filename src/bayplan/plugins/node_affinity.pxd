cimport cython
from libc.stdint cimport int64_t

from bayplan.base cimport go
from bayplan.framework.rule cimport FilterRule
from bayplan.plugins.normalize_score cimport StretchedScoreRule
from bayplan.state.node_matcher cimport SelectorMatcher, TermMatcher

cdef class RequiredAffinity(FilterRule):
    cdef TermMatcher _labels
    cdef SelectorMatcher _selector, _added

    cpdef void bind(self) except *
    cpdef int filter(self, Py_ssize_t row) except -1

cdef class PreferredAffinity(StretchedScoreRule):
    cdef list _weights, _terms

    @cython.locals(term=TermMatcher)
    cpdef void bind(self) except *
    @cython.locals(total=int64_t, number=Py_ssize_t, term=TermMatcher)
    cpdef int64_t score(self, Py_ssize_t row) except? -9223372036854775807
