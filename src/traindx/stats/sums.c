/* Sum, sum of squares, least, greatest and number of non-zero elements of a tensor, in one pass; and
   how far samples have moved (`traindx_moved`, which `samples.py` calls).

   NumPy and torch take a pass for each, which is most of what a measured step costs. Compiled where
   there is a compiler when traindx is installed (hatch_build.py); `native.py` calls it, and without
   it `host.py` does the same work with NumPy and torch.

   Each of LANES partial sums takes at most ROWS elements in the type it computes in, and is then
   added to one in double: what a long sum in float would lose is not lost. Compiled without
   -ffast-math, which would make the whole process flush denormal numbers to zero: the lanes already
   say which sums may go side by side. Where the processor has it, a product is added without being
   rounded, so that the last digits of a sum of squares differ from one kind of processor to another.

   A block of ROWS rows is read forwards, but the blocks from the end: what was written last is still
   in the cache, and whoever reads the tensor next, from its start, finds that there. No processor
   sees this coming, so the block before is asked for ahead of time. The two save a third of the time
   that 3 MB take which were just written, the next reader's included. */

#include <float.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LANES 32 /* more than compilers write out one by one, which they then do not do in vectors */
#define ROWS 256
#define BLOCK (ROWS * LANES)
#define LINE 64 /* bytes of the cache at a time; where there are more, some are asked for twice */
#define PLACES 8

/* One function for each generation of processors, chosen as the library is loaded. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(TRAINDX_PLAIN)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif
#define INLINE static inline __attribute__((always_inline))

enum { ADDRESS, SIZE, ZEROS }; /* what is asked; nonzero is found only if ZEROS is not 0 */

/* As `Row` in `rows.py`; nonfinite is -1 where this one pass is not enough. */
typedef struct {
    int64_t size;
    double total, m2, low, high;
    int64_t nonfinite, looked_at;
    double nonzero;
} Row;

/* What they mean stands in `host.py`. */
#define LEAST_SHARE (1.0 / 3)
#define VANISHING 1e-33

/* Fills what follows from the sums of the distances from a shift, and of their squares. */
INLINE void complete(Row *row, double shift, double total, double square) {
    const double m2 = square - total / row->size * total;
    const int is_finite = square <= DBL_MAX; /* NaN shows in the square alone */
    const int is_plain = is_finite && m2 >= LEAST_SHARE * square && square >= VANISHING * row->size;
    const int is_alike = is_finite && !is_plain && row->low == row->high;
    row->total = is_alike ? row->low * row->size : total + shift * row->size;
    row->m2 = is_alike ? 0 : m2;
    row->nonfinite = is_plain || is_alike ? 0 : -1;
}

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

#define IS_NONZERO(value) ((value) != 0)
#define HAS_MAGNITUDE(bits) (((bits) & 0x7fff) != 0) /* of a half type: the rest is the sign */

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

#define SUMS_OF(NAME, STORED, REAL, COUNT, READ, IS_NONZERO)                                       \
    SHIFT_OF(NAME##_shift, STORED, REAL, READ)                                                     \
    FOR_EACH_PROCESSOR void traindx_##NAME(const int64_t *asked, Row *found) {                     \
        const STORED *values = (const STORED *)(intptr_t)asked[ADDRESS];                           \
        const int64_t size = asked[SIZE], rest = size % LANES;                                     \
        const REAL shift = NAME##_shift(values, size);                                             \
        double totals[LANES] = {0}, squares[LANES] = {0};                                          \
        REAL low[LANES], high[LANES];                                                              \
        int64_t nonzero = 0, left = size - rest;                                                   \
        for (int j = 0; j < LANES; j++) low[j] = high[j] = READ(values[size - 1]);                 \
        for (int64_t j = 0; j < rest; j++) {                                                       \
            REAL value = READ(values[left + j]), apart = value - shift;                            \
            totals[j] = apart;                                                                     \
            squares[j] = (double)apart * apart;                                                    \
            low[j] = high[j] = value;                                                              \
            nonzero += IS_NONZERO(values[left + j]);                                               \
        }                                                                                          \
        while (left > 0) {                                                                         \
            const int64_t length = left < BLOCK ? left : BLOCK;                                    \
            const STORED *block = values + (left -= length);                                       \
            const int64_t ahead = left < BLOCK ? left : BLOCK;                                     \
            REAL sum[LANES] = {0}, square[LANES] = {0};                                            \
            for (const STORED *row = block; row < block + length; row += LANES) {                  \
                for (size_t byte = 0; byte < LANES * sizeof *row; byte += LINE)                    \
                    __builtin_prefetch((const char *)(row - ahead) + byte, 0, 2);                  \
                for (int j = 0; j < LANES; j++) {                                                  \
                    REAL value = READ(row[j]), apart = value - shift;                              \
                    sum[j] += apart;                                                               \
                    square[j] += apart * apart;                                                    \
                    low[j] = value < low[j] ? value : low[j];                                      \
                    high[j] = value > high[j] ? value : high[j];                                   \
                }                                                                                  \
            }                                                                                      \
            for (int j = 0; j < LANES; j++) {                                                      \
                totals[j] += sum[j];                                                               \
                squares[j] += square[j];                                                           \
            }                                                                                      \
            if (asked[ZEROS]) {                                                                    \
                COUNT counts[LANES] = {0};                                                         \
                for (const STORED *row = block; row < block + length; row += LANES)                \
                    for (int j = 0; j < LANES; j++) counts[j] += IS_NONZERO(row[j]);               \
                for (int j = 0; j < LANES; j++) nonzero += counts[j];                              \
            }                                                                                      \
        }                                                                                          \
        for (int j = 1; j < LANES; j++) {                                                          \
            totals[0] += totals[j];                                                                \
            squares[0] += squares[j];                                                              \
            low[0] = low[j] < low[0] ? low[j] : low[0];                                            \
            high[0] = high[j] > high[0] ? high[j] : high[0];                                       \
        }                                                                                          \
        const int64_t looked_at = asked[ZEROS] ? size : 0;                                         \
        *found = (Row){size, 0, 0, low[0], high[0], 0, looked_at, looked_at ? nonzero : 0};        \
        complete(found, shift, totals[0], squares[0]);                                             \
    }

SUMS_OF(f32, float, float, int32_t, of_f32, IS_NONZERO)
SUMS_OF(f64, double, double, int64_t, of_f64, IS_NONZERO)
SUMS_OF(bf16, uint16_t, float, uint16_t, of_bf16, HAS_MAGNITUDE)
SUMS_OF(f16, uint16_t, float, uint16_t, of_f16, HAS_MAGNITUDE)

/* Samples of several tensors, one after another in double, in place of those that were kept before;
   and of each its RMS before, and the norm of the change over that of what was before.
   A sample is rows of TOGETHER elements in the same distance, and a rest behind them. Nobody has
   read them lately, and no processor sees where the next one lies: it is asked for ahead of time. */
enum { PLACE, APART, COUNT, REST, KIND, FIELDS };
enum { OF_FLOAT, OF_DOUBLE, OF_INTEGERS };
#define TOGETHER 16 /* compilers write so few out one by one, which is slower: hence the pragma */
#define AHEAD 16    /* rows asked for before they are read */

#define SAMPLE_OF(NAME, REAL)                                                                      \
    INLINE void NAME(const int64_t *asked, double *kept, double *found) {                          \
        const REAL *values = (const REAL *)(intptr_t)asked[PLACE];                                 \
        const int64_t apart = asked[APART], rest = asked[REST];                                    \
        double squares[TOGETHER] = {0}, moved[TOGETHER] = {0};                                     \
        for (int64_t row = 0; row < asked[COUNT]; row++, values += apart, kept += TOGETHER) {      \
            for (size_t byte = 0; byte < TOGETHER * sizeof *values; byte += LINE)                  \
                __builtin_prefetch((const char *)(values + AHEAD * apart) + byte, 0, 2);           \
            _Pragma("GCC unroll 1") for (int j = 0; j < TOGETHER; j++) {                           \
                double before = kept[j], change = (kept[j] = values[j]) - before;                  \
                squares[j] += before * before;                                                     \
                moved[j] += change * change;                                                       \
            }                                                                                      \
        }                                                                                          \
        for (int64_t j = 0; j < rest; j++) {                                                       \
            double before = kept[j], change = (kept[j] = values[j]) - before;                      \
            squares[j] += before * before;                                                         \
            moved[j] += change * change;                                                           \
        }                                                                                          \
        for (int j = 1; j < TOGETHER; j++) {                                                       \
            squares[0] += squares[j];                                                              \
            moved[0] += moved[j];                                                                  \
        }                                                                                          \
        found[0] = __builtin_sqrt(squares[0] / (asked[COUNT] * TOGETHER + rest));                  \
        found[1] = __builtin_sqrt(moved[0] / squares[0]);                                          \
    }

SAMPLE_OF(sample_f32, float)
SAMPLE_OF(sample_f64, double)
SAMPLE_OF(sample_i64, int64_t)

FOR_EACH_PROCESSOR void traindx_moved(const int64_t *asked, double *kept, double *found) {
    for (; asked[PLACE]; asked += FIELDS, found += 2) {
        if (asked[KIND] == OF_FLOAT) sample_f32(asked, kept, found);
        if (asked[KIND] == OF_DOUBLE) sample_f64(asked, kept, found);
        if (asked[KIND] == OF_INTEGERS) sample_i64(asked, kept, found);
        kept += asked[COUNT] * TOGETHER + asked[REST];
    }
}

/* Raised whenever what is above means something else; `native.py` has the same number. */
int traindx_sums_version(void) { return 3; }
