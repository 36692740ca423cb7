/* Go's arithmetic on amd64, for compiled modules: go.pxd declares these functions, go_arithmetic.py has the same ones for Python.

   Compile with -fwrapv and -ffp-contract=off. C leaves open what happens where an integer is divided by -1 or by 0, or a float
   does not fit into an integer, and processors differ; every such case is decided here. */

#ifndef BAYPLAN_GO_ARITHMETIC_H
#define BAYPLAN_GO_ARITHMETIC_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef Py_PYTHON_H
static int64_t go_panic_divide(void) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyErr_SetString(PyExc_ZeroDivisionError, "integer divide by zero");
    PyGILState_Release(state);
    return -1;
}
#else
static int64_t go_panic_divide(void) { return -1; }
#endif

static inline int64_t go_wrap(int64_t a) { return a; }
static inline int64_t go_add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static inline int64_t go_sub(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
static inline int64_t go_mul(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }

static inline int64_t go_quotient(int64_t a, int64_t b) {
    if (b == 0) return go_panic_divide();
    return b == -1 ? go_sub(0, a) : a / b;
}

static inline int64_t go_remainder(int64_t a, int64_t b) {
    if (b == 0) return go_panic_divide();
    return b == -1 ? 0 : a % b;
}

static inline double go_divide(double a, double b) { return a / b; }

static inline int64_t go_to_int64(double x) {
    return x >= -9223372036854775808.0 && x < 9223372036854775808.0 ? (int64_t)x : INT64_MIN;
}

/* Vector instructions convert between doubles and 64-bit integers only from AVX-512 on; these two need none of them. Both are exact
   from 0 to below 2^52. */
static inline double go_small_float(int64_t a) {
    int64_t bits = a | 0x4330000000000000;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x - 4503599627370496.0;
}

static inline int64_t go_small_int64(double x) {
    int64_t bits;
    x += 4503599627370496.0;
    memcpy(&bits, &x, sizeof bits);
    return bits - 0x4330000000000000;
}

static inline double go_round(double x) {
    double whole = trunc(x);
    return fabs(x - whole) >= 0.5 ? whole + copysign(1.0, x) : whole;
}

/* As go_arithmetic.log, which says where the method is from. */
static inline double go_log(double x) {
    double f, s, s2, s4, odd, even, half_square;
    int k;
    if (!(x > 0.0)) return x == 0.0 ? -INFINITY : NAN;
    if (isinf(x)) return x;
    f = frexp(x, &k);
    if (f < 0.70710678118654752440) {
        f *= 2;
        k--;
    }
    f -= 1;
    s = f / (2 + f);
    s2 = s * s;
    s4 = s2 * s2;
    odd = s2 * (6.666666666666735130e-01
                + s4 * (2.857142874366239149e-01 + s4 * (1.818357216161805012e-01 + s4 * 1.479819860511658591e-01)));
    even = s4 * (3.999999999940941908e-01 + s4 * (2.222219843214978396e-01 + s4 * 1.531383769920937332e-01));
    half_square = 0.5 * f * f;
    return k * 6.93147180369123816490e-01
           - ((half_square - (s * (half_square + (odd + even)) + k * 1.90821492927058770002e-10)) - f);
}

static inline int64_t go_float_bits(double x) {
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline double go_float_from_bits(int64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#endif
