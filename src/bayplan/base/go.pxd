# Go's arithmetic for compiled modules, inlined. A module writes `from bayplan.base import go_arithmetic as go` in its
# .py file, and `from bayplan.base cimport go` in its .pxd file: `go.add(a, b)` then means the function here, or that of
# go_arithmetic.py if the module is not compiled.

from libc.stdint cimport int64_t

cdef extern from "bayplan/base/go_arithmetic.h" nogil:
    int64_t wrap "go_wrap"(int64_t value) noexcept
    int64_t add "go_add"(int64_t a, int64_t b) noexcept
    int64_t sub "go_sub"(int64_t a, int64_t b) noexcept
    int64_t mul "go_mul"(int64_t a, int64_t b) noexcept
    int64_t quotient "go_quotient"(int64_t a, int64_t b) except? -1
    int64_t remainder "go_remainder"(int64_t a, int64_t b) except? -1
    double divide "go_divide"(double a, double b) noexcept
    int64_t to_int64 "go_to_int64"(double x) noexcept
    double small_float "go_small_float"(int64_t a) noexcept
    int64_t small_int64 "go_small_int64"(double x) noexcept
    double round "go_round"(double x) noexcept
    double log "go_log"(double x) noexcept
    int64_t float_bits "go_float_bits"(double x) noexcept
    double float_from_bits "go_float_from_bits"(int64_t bits) noexcept
