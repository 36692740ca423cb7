cimport cython
from libc cimport math
from libc.stdint cimport int64_t

from bayplan.base cimport go
from bayplan.framework.rule cimport ScoreRule
from bayplan.objects.struct_layouts cimport Pod, PodStatus
from bayplan.plugins.scored_resources cimport ResourceScore, ScoredResource
from bayplan.state.columns cimport Columns

cdef int64_t HALF, MAX_IN_DOUBLES
cdef Py_ssize_t FIRST_RESOURCE, CHUNK

@cython.locals(status=PodStatus)
cdef object resizes_of(Pod pod)

cdef class Balance(ResourceScore):
    cdef bint _best_effort

    cpdef void score_all(self, int64_t[::1] raw) except *
    @cython.locals(
        columns=Columns, count=Py_ssize_t, start=Py_ssize_t, length=Py_ssize_t, i=Py_ssize_t, seen=int64_t,
        other=Py_ssize_t,
    )
    cdef bint _score_in_doubles(self, int64_t[::1] raw) except -1
    @cython.locals(
        resource=ScoredResource, columns=Columns, number=Py_ssize_t, base=Py_ssize_t, seen=int64_t, used=int64_t,
        together=int64_t, i=Py_ssize_t,
    )
    cdef int64_t _find_shares(self, Py_ssize_t place, Py_ssize_t start, Py_ssize_t length) except? -1
    @cython.locals(resource=ScoredResource, columns=Columns, counting=Py_ssize_t, change=int64_t)
    cpdef int64_t score(self, Py_ssize_t row) except? -9223372036854775807
    @cython.locals(resource=ScoredResource, counting=Py_ssize_t, whole=int64_t)
    cdef double deviation(self, Py_ssize_t row, bint with_pod) except? -1.0

cdef inline double share_of(int64_t used, int64_t whole) noexcept
cdef inline int64_t evenness(double deviation) noexcept
