cimport cython
from libc.stdint cimport int64_t

from bayplan.base cimport go
from bayplan.classic.plugins.priority cimport ReducedScoreRule
from bayplan.state.node_matcher cimport TermMatcher

cdef class PreferredTerms(ReducedScoreRule):
    cdef int64_t[::1] _weights
    cdef list _terms

    @cython.locals(term=TermMatcher)
    cpdef void bind(self) except *
    @cython.locals(total=int64_t, number=Py_ssize_t, term=TermMatcher)
    cpdef int64_t score(self, Py_ssize_t row) except? -9223372036854775807
