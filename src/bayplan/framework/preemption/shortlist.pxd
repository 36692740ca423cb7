cimport cython
from libc.stdint cimport int64_t

from bayplan.state.pod_info cimport PodInfo

@cython.locals(first=PodInfo, info=PodInfo, priorities=int64_t)
cpdef void fill(int64_t[:, ::1] table, Py_ssize_t place, list victims, Py_ssize_t violations) except *

cdef class Shortlist:
    cdef public object rows, places, table, infeasible
    cdef public list victims

    @cython.locals(
        places=Py_ssize_t[::1], table=int64_t[:, ::1], best=Py_ssize_t[::1], ties=Py_ssize_t, criterion=Py_ssize_t,
    )
    cpdef object best(self)
