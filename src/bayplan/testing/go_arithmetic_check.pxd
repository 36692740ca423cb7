cimport cython
from libc.stdint cimport int64_t

from bayplan.base cimport go

cpdef int64_t integer_result(str name, int64_t a, int64_t b) except? -1
cdef int64_t MULTIPLIER
cdef int64_t INCREMENT
cdef int64_t PRIME

cpdef double float_result(str name, double a, double b) except? -1
cpdef int64_t converted(double x) except? -1
cpdef double small_float(int64_t a) except? -1
cpdef int64_t small_int64(double x) except? -1

@cython.locals(total=int64_t, state=int64_t, index=Py_ssize_t, a=int64_t, b=int64_t, x=double, y=double, count=Py_ssize_t)
cpdef int64_t results_hash(Py_ssize_t count) except? -1

cdef int64_t mixed(int64_t total, int64_t value) noexcept
cdef int64_t mixed_float(int64_t total, double x) noexcept
