cimport cython

from bayplan.objects.struct_layouts cimport ObjectMeta, Pod

cdef class OwnedPods:
    cdef public dict active, finished, ready, terminating, uncounted

    cpdef object get(self, object key)
    @cython.locals(metadata=ObjectMeta, group=dict)
    cpdef void put(self, object key, Pod pod) except *
    cpdef void discard(self, object key) except *

cpdef bint is_finished(Pod pod) except -1

cpdef bint is_active(Pod pod) except -1
