cimport cython
from libc.stdint cimport int64_t, uint64_t

# Constants of the module, typed as C numbers.
cdef Py_ssize_t _MAX_INSERTION_SORTED

cdef class Sorter:
    cdef int64_t[::1] _ranks, _places
    cdef int _swapped
    cdef bint _was_partitioned

    cpdef list sort(self)
    @cython.locals(is_balanced=bint, is_ascending=bint, length=Py_ssize_t, pivot=Py_ssize_t, middle=Py_ssize_t)
    cdef void _sort(self, Py_ssize_t start, Py_ssize_t end, int unbalanced_allowed) noexcept
    cdef void _swap(self, Py_ssize_t left, Py_ssize_t right) noexcept
    cdef void _insertion_sort(self, Py_ssize_t start, Py_ssize_t end) noexcept
    cdef void _sink(self, Py_ssize_t number, Py_ssize_t least) noexcept
    @cython.locals(length=Py_ssize_t, last=Py_ssize_t)
    cdef void _heap_sort(self, Py_ssize_t start, Py_ssize_t end) noexcept
    @cython.locals(child=Py_ssize_t)
    cdef void _sift_down(self, Py_ssize_t root, Py_ssize_t length, Py_ssize_t start) noexcept
    @cython.locals(
        length=Py_ssize_t, size=uint64_t, random=uint64_t, around=Py_ssize_t, number=Py_ssize_t, other=Py_ssize_t,
    )
    cdef void _break_patterns(self, Py_ssize_t start, Py_ssize_t end) noexcept
    @cython.locals(quarter=Py_ssize_t, low=Py_ssize_t, middle=Py_ssize_t, high=Py_ssize_t)
    cdef Py_ssize_t _choose_pivot(self, Py_ssize_t start, Py_ssize_t end) noexcept
    cdef Py_ssize_t _median(self, Py_ssize_t low, Py_ssize_t middle, Py_ssize_t high) noexcept
    cdef void _reverse(self, Py_ssize_t start, Py_ssize_t end) noexcept
    @cython.locals(number=Py_ssize_t, later=Py_ssize_t, step=int)
    cdef bint _sort_nearly_sorted(self, Py_ssize_t start, Py_ssize_t end) noexcept
    @cython.locals(left=Py_ssize_t, right=Py_ssize_t, swaps=Py_ssize_t)
    cdef Py_ssize_t _partition(self, Py_ssize_t start, Py_ssize_t end, Py_ssize_t pivot) noexcept
    @cython.locals(left=Py_ssize_t, right=Py_ssize_t)
    cdef Py_ssize_t _partition_equal(self, Py_ssize_t start, Py_ssize_t end, Py_ssize_t pivot) noexcept
