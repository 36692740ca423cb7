cimport cython
from libc.stdint cimport int64_t, uint8_t

# Constants of the module, typed as C numbers.
cdef Py_ssize_t BLOCK, _MIN_FEASIBLE_NODES, _MIN_PERCENTAGE, _ADAPTIVE_PERCENTAGE, _NODES_PER_PERCENT

cpdef Py_ssize_t num_feasible_nodes_to_find(Py_ssize_t percentage, Py_ssize_t count) except -1

cdef class Sample:
    cdef public Py_ssize_t[::1] rows
    cdef public Py_ssize_t count, start, visited
    cdef UnsortedRows _ties

    @cython.locals(chosen=UnsortedRows, highest=int64_t, ties=Py_ssize_t)
    cpdef tuple best(self, int64_t[::1] total)

cdef class NodeSampling:
    cdef public Py_ssize_t percentage_of_nodes_to_score, next_start
    cdef public bint extended
    cdef object _order
    cdef Py_ssize_t[::1] _visits
    cdef Sample _sample

    cpdef Py_ssize_t wanted(self, object profile_percentage, Py_ssize_t count, bint scoring) except -1
    @cython.locals(count=Py_ssize_t, found=Py_ssize_t, visited=Py_ssize_t, place=Py_ssize_t, start=Py_ssize_t, end=Py_ssize_t)
    cpdef Sample search(self, object order, uint8_t[::1] feasible, Py_ssize_t wanted)
    cpdef void advance(self, Py_ssize_t processed, Py_ssize_t count) except *

cdef class BestRows:
    cdef readonly int64_t highest
    cdef int64_t[::1] _total, _best
    cdef Py_ssize_t[::1] _count
    cdef uint8_t[::1] _stale
    cdef Py_ssize_t _rows, _ties

    cpdef void begin(self, int64_t[::1] total, Py_ssize_t rows) except *
    cpdef void update(self, Py_ssize_t row, int64_t before, int64_t after) except *
    @cython.locals(ties=Py_ssize_t)
    cpdef int64_t search(self) except? -2
    @cython.locals(count=Py_ssize_t, start=Py_ssize_t)
    cdef void _search_block(self, Py_ssize_t block) except *
    @cython.locals(block=Py_ssize_t)
    cdef Py_ssize_t _nth(self, Py_ssize_t number) except -1

cdef class UnsortedRows:
    cdef Py_ssize_t[::1] rows
    cdef Py_ssize_t count

    @cython.locals(low=Py_ssize_t, high=Py_ssize_t, left=Py_ssize_t, right=Py_ssize_t)
    cdef Py_ssize_t _nth(self, Py_ssize_t number) except -1
