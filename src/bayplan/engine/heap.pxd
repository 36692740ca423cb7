cimport cython

cdef class PodHeap:
    cdef readonly Py_ssize_t _live, _dead
    cdef object _tier
    cdef readonly list _runs, _tails, _heads, _rest

    @cython.locals(entry=tuple, tails=list, at=Py_ssize_t)
    cpdef void push(self, object queued, object key) except *
    @cython.locals(entry=tuple)
    cpdef object pop(self)
    @cython.locals(entry=tuple)
    cpdef object peek(self)
    cpdef void discard(self, object queued) except *
    cpdef void reorder(self, object queued, object key) except *
    cdef tuple _first(self)
    @cython.locals(heads=list, rest=list, at=Py_ssize_t)
    cdef tuple _take_first(self)
    cdef void _compact(self) except *
