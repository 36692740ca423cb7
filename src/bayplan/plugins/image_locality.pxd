from libc.stdint cimport int64_t

from bayplan.framework.rule cimport ScoreRule

cdef class ImageScore(ScoreRule):
    cdef object _spec, _nodes
    cdef int64_t[::1] _scores
    cdef bint _moved

    cpdef void bind(self) except *
    cpdef bint refresh(self) except -1
    cpdef int64_t score(self, Py_ssize_t row) except? -9223372036854775807
