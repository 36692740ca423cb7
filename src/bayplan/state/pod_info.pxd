from libc.stdint cimport int64_t

from bayplan.objects.struct_layouts cimport Pod

# Constants of the module, typed as C numbers.
cdef int64_t _UNKNOWN

cdef class Footprint:
    cdef public object largest
    cdef public tuple amounts, host_ports
    cdef public int64_t[:, ::1] entries
    cdef object __weakref__

cdef class PodClass:
    cdef public object namespace, labels, terminating
    cdef public dict nodes
    cdef public list counters
    cdef object __weakref__

cdef class PodInfo:
    cdef public object key
    cdef public Pod pod
    cdef public Footprint footprint
    cdef public PodClass pod_class
    cdef public int64_t priority
    cdef public tuple owned_counters
    cdef public Py_ssize_t row
    cdef int64_t _start_ns
    cdef object __weakref__

    cpdef int64_t started_at(self) except? -1
    cpdef void replace_version(self, object pod) except *

cpdef bint counts_the_same(Pod old, Pod new) except -1
