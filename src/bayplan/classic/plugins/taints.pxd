from libc.stdint cimport int64_t

from bayplan.classic.plugins.priority cimport ReducedScoreRule

cdef class UntoleratedTaints(ReducedScoreRule):
    cdef object _spec, _cluster
    cdef int64_t[::1] _counts

    cpdef void bind(self) except *
    cpdef int64_t score(self, Py_ssize_t row) except? -9223372036854775807
