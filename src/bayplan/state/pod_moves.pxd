cimport cython
from libc.stdint cimport int64_t

from bayplan.base cimport go
from bayplan.state.columns cimport Columns
from bayplan.state.counters cimport Counter
from bayplan.state.pod_info cimport PodInfo

cdef class PodMoves:
    cdef object _state, _host_ports
    cdef Columns _columns
    cdef bint _with_pods
    cdef list _moves
    cdef dict _pods_before

    cpdef void add(self, PodInfo info, Py_ssize_t row) except *
    cpdef void remove(self, PodInfo info, Py_ssize_t row) except *
    cdef void _move(self, PodInfo info, Py_ssize_t row, Py_ssize_t sign) except *
    @cython.locals(info=PodInfo, row=Py_ssize_t, sign=Py_ssize_t)
    cpdef void undo(self, Py_ssize_t length=*) except *
    cdef void _apply(self, PodInfo info, Py_ssize_t row, Py_ssize_t sign) except *

@cython.locals(number=Py_ssize_t, counter=Counter)
cpdef void count_pod(Columns columns, PodInfo info, Py_ssize_t row, Py_ssize_t sign) except *
