/* Prints `results_hash` of bayplan.testing.go_arithmetic_check for the counts given, without Python: for processors that are
   only emulated (make test-arm). */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bayplan/base/go_arithmetic.h"

static int64_t mixed(int64_t total, int64_t value) { return go_mul(total ^ value, 1099511628211); }

static int64_t mixed_float(int64_t total, double x) { return mixed(total, x != x ? 0 : go_float_bits(x)); }

static int64_t next(int64_t state) { return go_add(go_mul(state, 6364136223846793005), 1442695040888963407); }

static int64_t results_hash(int64_t count) {
    int64_t total = 1469598103934665603, state = 42;
    for (int64_t index = 0; index < count; index++) {
        int64_t a = (state = next(state)) >> (index % 64);
        int64_t b = (state = next(state)) >> (index / 64 % 64);
        total = mixed(total, go_add(a, b));
        total = mixed(total, go_sub(a, b));
        total = mixed(total, go_mul(a, b));
        if (b != 0) {
            total = mixed(total, go_quotient(a, b));
            total = mixed(total, go_remainder(a, b));
        }
        double x = go_float_from_bits(a), y = go_float_from_bits(b);
        total = mixed_float(total, go_divide(x, y));
        total = mixed_float(total, go_divide((double)a, (double)b));
        total = mixed_float(total, x * y + (double)a);
        total = mixed_float(total, go_round(x));
        total = mixed_float(total, go_round((double)a / 2.0));
        total = mixed_float(total, go_log(x));
        total = mixed_float(total, go_log((double)a));
        total = mixed(total, go_to_int64(x));
        total = mixed(total, go_to_int64((double)a * 3.0));
    }
    return total;
}

int main(int count, char **arguments) {
    for (int place = 1; place < count; place++) printf("%" PRId64 "\n", results_hash(atoll(arguments[place])));
    return 0;
}
