// Numbers: long double, libm, rounding modes, floating-point exceptions; bit-exact results.
#include <fenv.h>
#include <math.h>

#include "guest.h"

int main(void) {
    long double sum = 0;
    double angle = 0;
    for (int i = 1; i < 20000; i++) {
        sum += 1.0L / i;
        angle += sin(i) * cos(i * 0.5) / sqrt(i) + exp(-i / 1000.0) * pow(1.0001, i) + log(i);
    }
    printf("%.21Lf %.17g\n", sum, angle);
    int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(fesetround(modes[i]), 0);
        volatile double third = 1.0, three = 3.0;
        volatile long double wide = 1.0L;
        third /= three;
        wide /= three;
        printf("%a %La %.0f\n", third, wide, rint(2.5));
        fflush(stdout);
        CHECK_EQ(fegetround(), modes[i]);
    }
    fesetround(FE_TONEAREST);
    feclearexcept(FE_ALL_EXCEPT);
    volatile double zero = 0, one = 1;
    volatile double infinite = one / zero;
    getppid();
    CHECK(isinf(infinite));
    CHECK_EQ(fetestexcept(FE_DIVBYZERO | FE_INVALID), FE_DIVBYZERO);
    return guest_passed();
}
