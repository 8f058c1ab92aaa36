/* Sum, sum of squares, least, greatest and number of non-zero elements of a tensor, in one pass.

   NumPy and torch take a pass for each, which is most of what a measured step costs. Compiled where
   there is a compiler when traindx is installed (hatch_build.py); `native.py` calls it, and without
   it `host.py` does the same work with NumPy and torch.

   Each of LANES partial sums takes at most RUN elements in the type it computes in, and is then
   added to one in double: what a long sum in float would lose is not lost. Compiled without
   -ffast-math, which would make the whole process flush denormal numbers to zero: the lanes already
   say which sums may go side by side. */

#include <stdint.h>
#include <string.h>

#define LANES 32
#define RUN 256
#define PLACES 8

/* One function for each generation of processors, chosen as the library is loaded. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(TRAINDX_PLAIN)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif
#define INLINE static inline __attribute__((always_inline))

enum { SHIFT, TOTAL, SQUARE, LOW, HIGH, NONZERO };

INLINE float of_f32(float value) { return value; }
INLINE double of_f64(double value) { return value; }

INLINE float of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

INLINE float of_bf16(uint16_t bits) { return of_bits((uint32_t)bits << 16); }

/* Without branches, so that many are converted at a time. */
INLINE float of_f16(uint16_t half) {
    uint32_t magnitude = (uint32_t)(half & 0x7fff) << 13, sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t normal = magnitude + (112u << 23); /* the exponents of float begin 112 lower */
    uint32_t special = magnitude + (224u << 23);
    float tiny = of_bits(magnitude + (113u << 23)) - of_bits(113u << 23);
    uint32_t small;
    memcpy(&small, &tiny, sizeof small);
    uint32_t bits = magnitude >= (0x1fu << 23) ? special : normal;
    return of_bits((magnitude < (1u << 23) ? small : bits) | sign);
}

/* A number near the mean, of elements at PLACES places; 0 where the mean is small beside the spread,
   so that whole numbers are summed exactly. The sums are taken around it: without that, a variance
   far below the square of the mean would be lost. */
#define SHIFT_OF(NAME, STORED, REAL, READ)                                                         \
    INLINE REAL NAME(const STORED *values, int64_t size) {                                         \
        double total = 0, square = 0;                                                              \
        int64_t apart = size / PLACES, taken = 0;                                                  \
        int64_t length = apart < PLACES ? (size < LANES ? size : LANES) : PLACES;                  \
        for (int64_t start = 0; start + length <= size; start += apart < PLACES ? size : apart)    \
            for (int64_t i = start; i < start + length; i++, taken++) {                            \
                double value = READ(values[i]);                                                    \
                total += value;                                                                    \
                square += value * value;                                                           \
            }                                                                                      \
        double mean = total / taken;                                                               \
        return 2 * mean * mean > square / taken ? (REAL)mean : 0;                                  \
    }

#define SUMS_OF(NAME, STORED, REAL, COUNT, READ)                                                   \
    SHIFT_OF(NAME##_shift, STORED, REAL, READ)                                                     \
    FOR_EACH_PROCESSOR void traindx_##NAME(const STORED *values, int64_t size, double *found) {    \
        const REAL shift = NAME##_shift(values, size);                                             \
        double total = 0, square = 0;                                                              \
        int64_t nonzero = 0, i = 0;                                                                \
        REAL low[LANES], high[LANES];                                                              \
        for (int j = 0; j < LANES; j++) low[j] = high[j] = READ(values[0]);                        \
        while (size - i >= LANES) {                                                                \
            REAL sums[LANES] = {0}, squares[LANES] = {0};                                          \
            COUNT counts[LANES] = {0};                                                             \
            int64_t rows = (size - i) / LANES;                                                     \
            if (rows > RUN) rows = RUN;                                                            \
            for (int64_t row = 0; row < rows; row++, i += LANES)                                   \
                for (int j = 0; j < LANES; j++) {                                                  \
                    REAL value = READ(values[i + j]), apart = value - shift;                       \
                    sums[j] += apart;                                                              \
                    squares[j] += apart * apart;                                                   \
                    low[j] = value < low[j] ? value : low[j];                                      \
                    high[j] = value > high[j] ? value : high[j];                                   \
                    counts[j] += value != 0;                                                       \
                }                                                                                  \
            for (int j = 0; j < LANES; j++) {                                                      \
                total += sums[j];                                                                  \
                square += squares[j];                                                              \
                nonzero += counts[j];                                                              \
            }                                                                                      \
        }                                                                                          \
        for (; i < size; i++) {                                                                    \
            REAL value = READ(values[i]), apart = value - shift;                                   \
            total += apart;                                                                        \
            square += (double)apart * apart;                                                       \
            low[0] = value < low[0] ? value : low[0];                                              \
            high[0] = value > high[0] ? value : high[0];                                           \
            nonzero += value != 0;                                                                 \
        }                                                                                          \
        for (int j = 1; j < LANES; j++) {                                                          \
            low[0] = low[j] < low[0] ? low[j] : low[0];                                            \
            high[0] = high[j] > high[0] ? high[j] : high[0];                                       \
        }                                                                                          \
        found[SHIFT] = shift;                                                                      \
        found[TOTAL] = total;                                                                      \
        found[SQUARE] = square;                                                                    \
        found[LOW] = low[0];                                                                       \
        found[HIGH] = high[0];                                                                     \
        found[NONZERO] = (double)nonzero;                                                          \
    }

SUMS_OF(f32, float, float, int32_t, of_f32)
SUMS_OF(f64, double, double, int64_t, of_f64)
SUMS_OF(bf16, uint16_t, float, int32_t, of_bf16)
SUMS_OF(f16, uint16_t, float, int32_t, of_f16)

/* Raised whenever what is above means something else; `native.py` has the same number. */
int traindx_sums_version(void) { return 1; }
