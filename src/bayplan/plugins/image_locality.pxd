cimport cython
from libc.stdint cimport int64_t

from bayplan.base cimport go
from bayplan.framework.rule cimport ScoreRule

cdef int64_t MAX_NODE_SCORE, MIN_THRESHOLD_BYTES

cdef class ImageScore(ScoreRule):
    cdef tuple _images
    cdef object _nodes
    cdef int64_t _most
    cdef list _scores, _holders
    cdef bint _moved

    @cython.locals(share=double, score=int64_t)
    cpdef void bind(self) except *
    cpdef bint refresh(self) except -1
    @cython.locals(total=int64_t, number=Py_ssize_t)
    cpdef int64_t score(self, Py_ssize_t row) except? -9223372036854775807
