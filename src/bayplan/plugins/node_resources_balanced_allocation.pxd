cimport cython
from libc cimport math
from libc.stdint cimport int64_t

from bayplan.base cimport go
from bayplan.plugins.scored_resources cimport ResourceScore

# Constants of the .py, as C numbers.
cdef int64_t HALF

cdef class Balance(ResourceScore):
    cdef bint _best_effort

    @cython.locals(change=int64_t)
    cpdef int64_t score(self, Py_ssize_t row) except? -9223372036854775807
    @cython.locals(
        counting=Py_ssize_t, total=double, highest=double, lowest=double, place=Py_ssize_t, share=double,
        deviation=double, mean=double, squares=double,
    )
    cdef int64_t evenness(self, Py_ssize_t row, bint with_pod) except? -9223372036854775807
    @cython.locals(requested=int64_t, share=double)
    cdef double share_of(self, Py_ssize_t place, Py_ssize_t row, bint with_pod) except? -1.0
