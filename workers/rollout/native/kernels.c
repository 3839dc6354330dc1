/* What lies between the matrix products of a decoding pass, each in one sweep over its data.
 *
 * Plain C with GCC's vector types, so that any processor's compiler can vectorise it; workers/rollout/native/library.py
 * compiles it where a compiler is there. workers/rollout/torch_operations.py has the same operations in PyTorch, and
 * workers/rollout/operations.py says what each computes. bfloat16 is kept as its 16 bits; every sum is taken in float.
 *
 * M tokens = R rows of N new tokens each, D hidden size, I inner size, H query heads, K key and value heads, E head
 * dimension (a multiple of 32), T capacity of a row in the cache (a multiple of 32), V vocabulary.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>
#ifdef __AVX512F__
#include <immintrin.h>
#endif
#ifdef __linux__
#include <sys/mman.h>
#endif

#define LANES 16
#define RESIDUAL_FLOOR 1e-12f /* as in workers/algo/acceptance.py */
#define MAX_QUERIES 16 /* of one key head, that are scored together: a tile's rows */

typedef float vf __attribute__((vector_size(4 * LANES), aligned(4)));
typedef uint32_t vu __attribute__((vector_size(4 * LANES), aligned(4)));
typedef int32_t vi __attribute__((vector_size(4 * LANES), aligned(4)));
typedef uint16_t vh __attribute__((vector_size(2 * LANES), aligned(2)));
typedef uint16_t bf16;

/* Asks for pages of 2 MiB where whole ones fit, before memory is written first: looking up small ones takes about a fifth of
 * the time of reading a large cache. */
void prefer_large_pages(char *start, int64_t bytes)
{
#ifdef MADV_HUGEPAGE
    uintptr_t size = 2 << 20, from = (uintptr_t)start, first = (from + size - 1) / size * size, end = (from + bytes) / size * size;
    if (first < end)
        madvise((void *)first, end - first, MADV_HUGEPAGE);
#endif
}

/* The first `length` bytes of some rows of one array [N, from_rows, H, from_bytes] into rows of another, [N, to_rows, H,
 * to_bytes]. */
void copy_rows(const char *from, const int64_t *from_rows, int64_t num_from, int64_t from_bytes, char *to, const int64_t *to_rows,
               int64_t num_to, int64_t to_bytes, int64_t count, int64_t n, int64_t h, int64_t length)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t row = 0; row < count; row++)
            for (int64_t head = 0; head < h; head++)
                memcpy(to + ((i * num_to + to_rows[row]) * h + head) * to_bytes,
                       from + ((i * num_from + from_rows[row]) * h + head) * from_bytes, length);
}

static inline vf splat(float x) { return x - (vf){0}; }

static inline vf load_bf16(const bf16 *p)
{
    vu bits = __builtin_convertvector(*(const vh *)p, vu) << 16;
    return (vf)bits;
}

/* 16 pairs of neighbours, apart. */
static inline void load_pairs(const bf16 *p, vf *even, vf *odd)
{
    vu bits = *(const vu *)p;
    *even = (vf)(bits << 16);
    *odd = (vf)(bits & 0xffff0000);
}

static inline void store_bf16(bf16 *p, vf x) /* to the nearest, ties to even; NaN stays NaN */
{
#ifdef __AVX512BF16__
    *(vh *)p = (vh)_mm512_cvtneps_pbh((__m512)x);
#else
    vu bits = (vu)x;
    vu rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    vu is_nan = (vu)(x != x);
    *(vh *)p = __builtin_convertvector((rounded & ~is_nan) | (is_nan & 0x7fc0), vh);
#endif
}

/* 32 in one piece: what is then read in one piece has not to wait until both halves are in memory. */
static inline void store_two(bf16 *p, vf x, vf y)
{
#ifdef __AVX512BF16__
    _mm512_storeu_si512(p, (__m512i)_mm512_cvtne2ps_pbh((__m512)y, (__m512)x));
#else
    store_bf16(p, x);
    store_bf16(p + LANES, y);
#endif
}

static inline float to_float(bf16 h)
{
    uint32_t bits = (uint32_t)h << 16;
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

static inline bf16 to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    if (x != x)
        return 0x7fc0;
    return (bf16)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static inline float sum_of(vf x)
{
#ifdef __AVX512F__
    return _mm512_reduce_add_ps((__m512)x);
#endif
    float s = 0;
    for (int i = 0; i < LANES; i++)
        s += x[i];
    return s;
}

static inline vf choose(vi where, vf a, vf b) { return (vf)((where & (vi)a) | (~where & (vi)b)); }

static inline float largest_of(vf x)
{
#ifdef __AVX512F__
    return _mm512_reduce_max_ps((__m512)x);
#endif
    float top = x[0];
    for (int i = 1; i < LANES; i++)
        top = x[i] > top ? x[i] : top;
    return top;
}

/* 1 / sqrt(x) to some units in the last place: what waits for a root and a division waits long. */
static inline float inverse_root(float x)
{
#ifdef __AVX512F__
    float y = _mm_cvtss_f32(_mm_rsqrt14_ss(_mm_set_ss(x), _mm_set_ss(x)));
    return y * (1.5f - 0.5f * x * y * y);
#else
    return 1.0f / sqrtf(x);
#endif
}

/* exp(x) to about 2 units in the last place, x held within -87 .. 87: 2^n times a polynomial of the rest. */
static inline vf exp_vf(vf x)
{
#ifdef __AVX512F__
    x = (vf)_mm512_min_ps(_mm512_max_ps((__m512)x, (__m512)splat(-87.0f)), (__m512)splat(87.0f));
    vf n = (vf)_mm512_roundscale_ps((__m512)(x * 1.44269504f), 0);
#else
    x = choose(x > -87.0f, x, splat(-87.0f));
    x = choose(x < 87.0f, x, splat(87.0f));
    vf n = x * 1.44269504f;
    n = __builtin_convertvector(__builtin_convertvector(n + choose(n < 0.0f, splat(-0.5f), splat(0.5f)), vi), vf);
#endif
    vf r = x - n * 0.693359375f - n * -2.12194440e-4f;
    vf y = splat(1.9875691500e-4f);
    y = y * r + 1.3981999507e-3f;
    y = y * r + 8.3334519073e-3f;
    y = y * r + 4.1665795894e-2f;
    y = y * r + 1.6666665459e-1f;
    y = y * r + 5.0000001201e-1f;
    y = y * r * r + r + 1.0f;
#ifdef __AVX512F__
    return (vf)_mm512_scalef_ps((__m512)y, (__m512)n);
#else
    return y * (vf)((vu)(__builtin_convertvector(n, vi) + 127) << 23);
#endif
}

/* Matrix tiles of 16 x 32 (AMX), where the processor has them; the system lets a process use them once it has asked,
 * or not (-1), and then this must be compiled without them. 0: there are none. */
#if defined(__AMX_BF16__) && defined(__AMX_TILE__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#define HAS_TILES
#define REQUEST_PERMISSION 0x1023 /* ARCH_REQ_XCOMP_PERM */
#define TILE_DATA 18
#define TILE_ELEMENTS 512
#define FETCHED_AHEAD 8 /* tiles */

int64_t use_tiles(void) { return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0 ? 1 : -1; }

typedef struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} __attribute__((packed)) tile_config;

static void configure(const int rows[8])
{
    tile_config config = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        config.rows[i] = rows[i] ? rows[i] : 1;
        config.row_bytes[i] = 64;
    }
    _tile_loadconfig(&config);
}
#else
int64_t use_tiles(void) { return 0; }
#endif

/* The embeddings [V, D] of N tokens of every row, or of counts of them, see attend(). */
void embed(const int64_t *token_ids, const int64_t *counts, const bf16 *embedding, float *x, int64_t r, int64_t n, int64_t d)
{
    for (int64_t row = 0; row < r; row++)
        for (int64_t token = 0; token < (counts ? counts[row] : n); token++, x += d) {
            const bf16 *from = embedding + token_ids[row * n + token] * d;
            for (int64_t i = 0; i < d; i += LANES)
                *(vf *)(x + i) = load_bf16(from + i);
        }
}

/* x += delta where there is one; normed = x / sqrt(mean(x^2) + eps); tap = x where it is wanted, its rows at tap_rows
 * (0: one after the other). */
static void add_norm_to(float *x, const bf16 *delta, bf16 *normed, bf16 *tap, int64_t tap_stride, const int64_t *tap_rows,
                        int64_t m, int64_t d, float eps)
{
    int64_t pairs = d / (2 * LANES) * (2 * LANES), i;
    for (int64_t row = 0; row < m; row++) {
        float *xr = x + row * d;
        const bf16 *dr = delta ? delta + row * d : 0;
        bf16 *tr = tap ? tap + (tap_rows ? tap_rows[row] : row) * tap_stride : 0, *nr = normed + row * d;
        vf squares = {0}, others = {0}; /* two sums, since each addition waits for the one before it */
        for (i = 0; i < d; i += LANES) {
            vf v = *(vf *)(xr + i);
            if (dr) {
                v += load_bf16(dr + i);
                *(vf *)(xr + i) = v;
            }
            vf more = others + v * v;
            others = squares;
            squares = more;
        }
        float scale = inverse_root(sum_of(squares + others) * (1.0f / (float)d) + eps);
        for (i = 0; i < pairs; i += 2 * LANES)
            store_two(nr + i, *(vf *)(xr + i) * scale, *(vf *)(xr + i + LANES) * scale);
        if (i < d)
            store_bf16(nr + i, *(vf *)(xr + i) * scale);
        for (i = 0; tr && i < pairs; i += 2 * LANES)
            store_two(tr + i, *(vf *)(xr + i), *(vf *)(xr + i + LANES));
        if (tr && i < d)
            store_bf16(tr + i, *(vf *)(xr + i));
    }
}

void add_norm(float *x, const bf16 *delta, bf16 *normed, bf16 *tap, int64_t tap_stride, int64_t m, int64_t d, float eps)
{
    add_norm_to(x, delta, normed, tap, tap_stride, 0, m, d, eps);
}

#ifdef __AVX512F__
/* 2^t to bfloat16's precision, t up to 126; 0 far below -126. */
static inline vf exp2_vf(vf t)
{
    vf n = (vf)_mm512_roundscale_ps((__m512)t, 0), r = t - n;
    vf power = ((0.0558f * r + 0.2402f) * r + 0.6931f) * r + 1.0f;
    return (vf)_mm512_scalef_ps((__m512)power, (__m512)n);
}
#endif

/* x / (1 + exp(-x)) to bfloat16's precision. */
static inline vf silu_vf(vf x)
{
#ifdef __AVX512F__
    vf t = (vf)_mm512_min_ps(_mm512_max_ps((__m512)(x * -1.44269504f), (__m512)splat(-126.0f)), (__m512)splat(126.0f));
    return x * (vf)_mm512_rcp14_ps((__m512)(1.0f + exp2_vf(t)));
#else
    return x / (1.0f + exp_vf(-x));
#endif
}

/* 16 channels of a head's first half and those of its second that they are turned with. */
static inline void turn(const bf16 *in, const float *weight, const float *cos, const float *sin, float scale, int64_t half,
                        vf *first, vf *second)
{
    vf a = load_bf16(in) * scale, b = load_bf16(in + half) * scale;
    if (weight) {
        a *= *(const vf *)weight;
        b *= *(const vf *)(weight + half);
    }
    *first = a * *(const vf *)cos - b * *(const vf *)sin;
    *second = b * *(const vf *)(cos + half) + a * *(const vf *)(sin + half);
}

/* One head: normed where a weight is given, turned by its position. */
static inline void turn_head(const bf16 *in, const float *weight, const float *cos, const float *sin, float eps,
                             int64_t e, bf16 *out)
{
    float scale = 1.0f;
    int64_t half = e / 2, i = 0;
    vf first[2], second[2];
    if (weight) {
        vf squares = {0}, others = {0};
        for (; i < e; i += 2 * LANES) {
            vf v = load_bf16(in + i), u = load_bf16(in + i + LANES);
            squares += v * v;
            others += u * u;
        }
        scale = inverse_root(sum_of(squares + others) * (1.0f / (float)e) + eps);
    }
    for (i = 0; i + 2 * LANES <= half; i += 2 * LANES) {
        for (int j = 0; j < 2; j++) {
            int64_t at = i + j * LANES;
            turn(in + at, weight ? weight + at : 0, cos + at, sin + at, scale, half, first + j, second + j);
        }
        store_two(out + i, first[0], first[1]);
        store_two(out + half + i, second[0], second[1]);
    }
    if (i < half) {
        turn(in + i, weight ? weight + i : 0, cos + i, sin + i, scale, half, first, second);
        store_bf16(out + i, *first);
        store_bf16(out + half + i, *second);
    }
}

/* Weights of a query's first `limit` scores, exp(score - largest) to bfloat16's precision, 0 from there to the first multiple
 * of 32 not below span; returns their sum, by which the mixed values are divided. */
static inline float exponentials(float *scores, bf16 *weights, int64_t limit, int64_t span)
{
    int64_t i = 0, padded = (span + 31) / 32 * 32;
    vf total = {0};
#ifdef __AVX512F__
    int64_t whole = limit / LANES * LANES;
    __m512 tops = (__m512)splat(-INFINITY);
    for (; i < whole; i += LANES)
        tops = _mm512_max_ps(tops, (__m512) * (vf *)(scores + i));
    __mmask16 rest = (__mmask16)((1 << (limit - whole)) - 1);
    tops = _mm512_mask_max_ps(tops, rest, tops, (__m512) * (vf *)(scores + i));
    float shift = largest_of((vf)tops) * 1.44269504f;
    vf others = {0}; /* two sums, since each addition waits for the one before it */
    for (i = 0; i < padded; i += 2 * LANES) {
        vf w = exp2_vf(*(vf *)(scores + i) * 1.44269504f - shift), u = exp2_vf(*(vf *)(scores + i + LANES) * 1.44269504f - shift);
        if (i + 2 * LANES > limit) {
            uint32_t counted = limit > i ? (uint32_t)((1ull << (limit - i)) - 1) : 0;
            w = (vf)_mm512_maskz_mov_ps((__mmask16)counted, (__m512)w);
            u = (vf)_mm512_maskz_mov_ps((__mmask16)(counted >> LANES), (__m512)u);
        }
        store_two(weights + i, w, u);
        total += w;
        others += u;
    }
    total += others;
#else
    int64_t end = (limit + LANES - 1) / LANES * LANES;
    for (i = limit; i < end; i++)
        scores[i] = -INFINITY;
    vf tops = *(vf *)scores;
    for (i = LANES; i < end; i += LANES)
        tops = choose(*(vf *)(scores + i) > tops, *(vf *)(scores + i), tops);
    float top = largest_of(tops);
    for (i = 0; i < end; i += LANES) {
        vf w = exp_vf(*(vf *)(scores + i) - top);
        store_bf16(weights + i, w);
        total += w;
    }
    for (; i < padded; i += LANES)
        *(vh *)(weights + i) = (vh){0};
#endif
    return sum_of(total);
}

/* Memory that is read next, fetched a few lines at a time between other things: a core waits for little more than it computes
 * where both go on together. */
typedef struct {
    const char *at[2], *end[2];
} ahead;

static inline void fetch(ahead *a, int64_t lines)
{
    for (int part = 0; part < 2; part++) {
        const char *at = a->at[part], *until = at + lines * 64 < a->end[part] ? at + lines * 64 : a->end[part];
        for (; at < until; at += 64)
            __builtin_prefetch(at, 0, 2);
        a->at[part] = at;
    }
}

/* scores[count, T] of queries[count, E] against keys up to span. */
static void score(const bf16 *queries, int count, const bf16 *keys, int64_t span, int64_t t, int64_t e, float *scores,
                  ahead *next, int64_t lines)
{
#ifdef HAS_TILES
    /* Two tiles of positions at a time, since each product waits for the one before it; T has room for the second. */
    for (int64_t s = 0; s < span; s += 2 * LANES) {
        _tile_zero(0);
        _tile_zero(1);
        for (int64_t c = 0; c < e; c += 32) {
            _tile_loadd(4, queries + c, e * 2);
            _tile_loadd(6, keys + s * e + c * LANES, 64);
            _tile_loadd(7, keys + (s + LANES) * e + c * LANES, 64);
            _tile_dpbf16ps(0, 4, 6);
            _tile_dpbf16ps(1, 4, 7);
        }
        fetch(next, lines);
        _tile_stored(0, scores + s, t * 4);
        _tile_stored(1, scores + s + LANES, t * 4);
    }
#else
    for (int64_t s = 0; s < span; s += LANES)
        for (int first = 0; first < count; first += 4) {
            int some = count - first < 4 ? count - first : 4;
            vf sums[4] = {0};
            for (int64_t c = 0; c < e; c += 2) {
                vf even, odd;
                load_pairs(keys + s * e + c * LANES, &even, &odd);
                for (int j = 0; j < some; j++) {
                    const bf16 *query = queries + (first + j) * e + c;
                    sums[j] += even * to_float(query[0]) + odd * to_float(query[1]);
                }
            }
            for (int j = 0; j < some; j++)
                *(vf *)(scores + (first + j) * t + s) = sums[j];
        }
#endif
}

/* out[count, E] = weights[count, T] times values up to span. */
static void mix(const bf16 *weights, int count, const bf16 *values, int64_t span, int64_t t, int64_t e, float *out,
                ahead *next, int64_t lines)
{
#ifdef HAS_TILES
    for (int64_t c = 0; c < e; c += 32) {
        _tile_zero(0);
        _tile_zero(1);
        for (int64_t s = 0; s < span; s += 32) {
            _tile_loadd(4, weights + s, t * 2);
            _tile_loadd(6, values + s * e + 2 * c, e * 4);
            _tile_loadd(7, values + s * e + 2 * c + 32, e * 4);
            _tile_dpbf16ps(0, 4, 6);
            _tile_dpbf16ps(1, 4, 7);
            fetch(next, lines);
        }
        _tile_stored(0, out + c, e * 4);
        _tile_stored(1, out + c + LANES, e * 4);
    }
#else
    for (int64_t c = 0; c < e; c += LANES)
        for (int first = 0; first < count; first += 4) {
            int some = count - first < 4 ? count - first : 4;
            vf sums[4] = {0};
            for (int64_t s = 0; s < span; s += 2) {
                vf even, odd;
                load_pairs(values + s * e + 2 * c, &even, &odd);
                for (int j = 0; j < some; j++) {
                    const bf16 *weight = weights + (first + j) * t + s;
                    sums[j] += even * to_float(weight[0]) + odd * to_float(weight[1]);
                }
            }
            for (int j = 0; j < some; j++)
                *(vf *)(out + (first + j) * e + c) = sums[j];
        }
#endif
}

/* One position's key, normed and turned, into a key head's tiles. */
static void write_key(const bf16 *key, const float *norm, const float *cos, const float *sin, int64_t at, bf16 *keys,
                      bf16 *turned, int64_t e, float eps)
{
    bf16 *to = keys + at / LANES * e * LANES + at % LANES * 2;
    turn_head(key, norm, cos + at * e, sin + at * e, eps, e, turned);
    for (int64_t c = 0; c < e; c += 2)
        memcpy(to + c * LANES, turned + c, 2 * sizeof(bf16));
}

/* One position's value into a key head's pairs of positions: every other element. */
static inline void write_value(const bf16 *value, int64_t at, bf16 *values, int64_t e)
{
    for (int64_t c = 0; c < e; c += LANES) {
        vu *to = (vu *)(values + at / 2 * e * 2 + 2 * c), own = __builtin_convertvector(*(const vh *)(value + c), vu);
        *to = at % 2 ? (*to & 0xffff) | own << 16 : (*to & 0xffff0000) | own;
    }
}

/* Puts N new tokens of every row into the cache at start .. start + N - 1 and, where out is given, attends. counts: how many
 * of each row there are, one row's behind the other's; 0: N of each.
 *
 * qkv: [M, (H + 2 K) E]. keys: [R, K, T / 16, E / 2, 16, 2], pairs of channels by position in tiles of 16 positions.
 * values: [R, K, T / 2, E, 2], pairs of positions by channel. scratch: attend_scratch_bytes() bytes. H / K <= 16.
 */
void attend(const bf16 *qkv, const float *qk_norm, const float *cos, const float *sin, const int64_t *start,
            const int64_t *counts, bf16 *keys, bf16 *values, bf16 *out, float *scratch, int64_t r, int64_t n, int64_t h,
            int64_t k, int64_t e, int64_t t, float eps)
{
    int64_t groups = h / k, width = (h + 2 * k) * e, block = MAX_QUERIES / groups;
    float *scores = scratch + e, *mixed = scores + MAX_QUERIES * t;
    bf16 *turned = (bf16 *)scratch;
    bf16 *weights = (bf16 *)(mixed + MAX_QUERIES * e), *queries = weights + MAX_QUERIES * t;
    const bf16 *own = qkv;
#ifdef HAS_TILES
    int configured = -1;
#endif
    for (int64_t row = 0; row < r; row++, own += n * width) {
        n = counts ? counts[row] : n;
        int64_t from = start[row], end = from + n;
        for (int64_t head = 0; head < k; head++) {
            bf16 *own_keys = keys + (row * k + head) * e * t, *own_values = values + (row * k + head) * t * e;
            for (int64_t i = 0; i < n; i++)
                write_key(own + i * width + (h + head) * e, qk_norm ? qk_norm + (h + head) * e : 0, cos, sin, from + i,
                          own_keys, turned, e, eps);
            /* The next head's, of this row or the next one. */
            int64_t then = row * k + head + 1;
            int64_t span = head + 1 < k ? end : row + 1 < r ? start[row + 1] + (counts ? counts[row + 1] : n) : 0;
            ahead next = {{(char *)(keys + then * e * t), (char *)(values + then * e * t)}};
            for (int part = 0; part < 2; part++)
                next.end[part] = next.at[part] + (span + LANES - 1) / LANES * LANES * e * 2;
            for (int64_t first = 0; out && first < n; first += block) {
                int64_t some = n - first < block ? n - first : block;
                int count = (int)(some * groups);
                /* Each part of the work fetches a share. */
                int64_t lines = (span + 15) / 16 * e / 2 / (2 * count + (span + 31) / 32 * (1 + e / 32)) + 1;
                span = from + first + some;
#ifdef HAS_TILES
                if (configured < count) { /* telling anew how many rows there are takes longer than a few too many */
                    configure((int[8]){count, count, count, count, count, count, 16, 16});
                    configured = count;
                }
#endif
                for (int j = 0; j < count; j++) {
                    int64_t token = first + j / groups, of = head * groups + j % groups;
                    turn_head(own + token * width + of * e, qk_norm ? qk_norm + of * e : 0, cos + (from + token) * e,
                              sin + (from + token) * e, eps, e, queries + j * e);
                    fetch(&next, lines);
                }
                score(queries, count, own_keys, span, t, e, scores, &next, lines);
                for (int64_t i = 0; first == 0 && i < n; i++)
                    write_value(own + i * width + (h + k + head) * e, from + i, own_values, e);
                float sums[MAX_QUERIES];
                for (int j = 0; j < count; j++) {
                    sums[j] = exponentials(scores + j * t, weights + j * t, from + first + j / groups + 1, span);
                    fetch(&next, lines);
                }
                mix(weights, count, own_values, span, t, e, mixed, &next, lines);
                for (int j = 0; j < count; j++) {
                    bf16 *to = out + (((own - qkv) / width + first + j / groups) * h + head * groups + j % groups) * e;
                    float share = 1.0f / sums[j];
                    for (int64_t c = 0; c < e; c += 2 * LANES)
                        store_two(to + c, *(vf *)(mixed + j * e + c) * share, *(vf *)(mixed + j * e + c + LANES) * share);
                }
            }
            for (int64_t i = 0; !out && i < n; i++)
                write_value(own + i * width + (h + k + head) * e, from + i, own_values, e);
        }
    }
#ifdef HAS_TILES
    _tile_release();
#endif
}

int64_t attend_scratch_bytes(int64_t e, int64_t t)
{
    return 4 * (e + MAX_QUERIES * t + MAX_QUERIES * e) + 2 * (MAX_QUERIES * t + MAX_QUERIES * e);
}

/* softmax(logits * sharpness) of every row; with sharpness 0 the first largest logit gets 1. */
void softmax(const bf16 *logits, float *probs, int64_t m, int64_t v, float sharpness)
{
    for (int64_t row = 0; row < m; row++) {
        const bf16 *in = logits + row * v;
        float *out = probs + row * v;
        int64_t i, best = 0, whole = v / LANES * LANES;
        float top = to_float(in[0]), total = 0;
        vf tops = splat(-INFINITY), totals = {0};
        for (i = 0; i < whole; i += LANES) {
            vf x = load_bf16(in + i);
            tops = choose(x > tops, x, tops);
        }
        top = largest_of(tops) > top ? largest_of(tops) : top;
        for (i = whole; i < v; i++)
            top = to_float(in[i]) > top ? to_float(in[i]) : top;
        if (sharpness == 0) {
            while (best < v - 1 && to_float(in[best]) != top)
                best++;
            memset(out, 0, v * sizeof(float));
            out[best] = 1;
            continue;
        }
        for (i = 0; i < whole; i += LANES) {
            vf w = exp_vf((load_bf16(in + i) - top) * sharpness);
            *(vf *)(out + i) = w;
            totals += w;
        }
        for (i = whole; i < v; i++)
            total += out[i] = expf((to_float(in[i]) - top) * sharpness);
        float scale = 1.0f / (total + sum_of(totals));
        for (i = 0; i < v; i++)
            out[i] *= scale;
    }
}

/* The first index at which the running sum of weights exceeds uniform times their total; never one of weight 0. */
static int64_t draw_one(const float *weights, int64_t v, float uniform)
{
    float total = 0;
    int64_t last = 0;
    for (int64_t i = 0; i < v; i++)
        total += weights[i];
    float target = uniform * total, sum = 0;
    for (int64_t i = 0; i < v; i++) {
        sum += weights[i];
        if (weights[i] > 0) {
            last = i;
            if (sum > target)
                return i;
        }
    }
    return last;
}

void draw(const float *weights, const float *uniforms, int64_t *tokens, int64_t m, int64_t v)
{
    for (int64_t row = 0; row < m; row++)
        tokens[row] = draw_one(weights + row * v, v, uniforms[row]);
}

/* Rejection sampling of K drafted tokens of every row, as workers/algo/acceptance.py's verify() says. q and its rows may lie
 * at any stride, in elements; q 0: one-hot; num_drafted 0: K everywhere. uniforms: [R, K + 1]. What comes out: how many were
 * accepted, the tokens from there on (accepted ones, the correction or bonus, the rest of the draft), [R, K + 1], and their
 * log-probabilities. is_packed: of each row there are as many p as it drafted tokens, and one. weights: room for V. */
void verify(const int64_t *drafted, int64_t row_stride, int64_t step_stride, const float *q, int64_t q_row_stride,
            int64_t q_step_stride, const int64_t *num_drafted, const float *p, const float *uniforms, int64_t *num_accepted,
            int64_t *tokens, float *logprobs, int64_t r, int64_t k, int64_t v, int64_t is_packed, float *weights)
{
    const float *policy = p;
    for (int64_t row = 0, read = k; row < r; row++, policy += (read + 1) * v) {
        const int64_t *draft = drafted + row * row_stride;
        const float *uniform = uniforms + row * (k + 1);
        int64_t count = num_drafted ? num_drafted[row] : k, at = 0;
        read = is_packed ? count : k;
        for (; at < count; at++) {
            int64_t token = draft[at * step_stride];
            float chance = q ? q[row * q_row_stride + at * q_step_stride + token] : 1.0f;
            if (!(uniform[at] * chance < policy[at * v + token])) /* u < p / q, without the division */
                break;
        }
        memcpy(weights, policy + at * v, v * sizeof(float));
        if (at < count && q) {
            const float *over = q + row * q_row_stride + at * q_step_stride;
            for (int64_t i = 0; i < v; i++) {
                float rest = weights[i] - over[i], least = weights[i] * RESIDUAL_FLOOR;
                weights[i] = rest > least ? rest : least;
            }
        } else if (at < count) {
            weights[draft[at * step_stride]] *= RESIDUAL_FLOOR;
        }
        num_accepted[row] = at;
        for (int64_t i = 0; i <= k; i++) {
            int64_t token = i == at ? draw_one(weights, v, uniform[k]) : i < k ? draft[i * step_stride] : 0;
            tokens[row * (k + 1) + i] = token;
            logprobs[row * (k + 1) + i] = i <= read ? logf(policy[i * v + token]) : 0;
        }
    }
}

/* Products with weights, where there are matrix tiles. Packed weights are [O / 16, I / 32, 16, 16, 2]: for each tile of
 * 16 outputs and 32 inputs, pairs of inputs by output. */
#ifdef HAS_TILES
/* 16 sums of each half of a block to their row: side by side, or silu(left) * right. */
static inline void store_halves(const float *left, bf16 *to, int is_gated)
{
    vf a = *(const vf *)left, b = *(const vf *)(left + TILE_ELEMENTS / 2);
    if (is_gated) {
        store_bf16(to, silu_vf(a) * b);
    } else {
        store_two(to, a, b);
    }
}

/* A block of 16 or 32 rows and 32 outputs whose sums are yet to be written. */
typedef struct {
    float sums[4][TILE_ELEMENTS / 2] __attribute__((aligned(64)));
    bf16 *out;
    int rows;
} block;

static inline void store_row(const block *b, int row, int64_t width, int is_gated)
{
    store_halves(b->sums[row / 16 * 2] + row % 16 * LANES, b->out + row * width, is_gated);
}

/* 16 or 32 rows of x times 32 outputs. Tiles 0-3 are sums (upper and lower rows x left and right outputs), 4-5 inputs, 6-7
 * weights. Meanwhile the block before is written, and `lines` of what comes after are fetched, for it comes from afar. */
static inline __attribute__((always_inline)) void product_block(const bf16 *x, const bf16 *weights, block *b,
                                                                const block *before, const char *after, int lines,
                                                                int64_t width, int is_gated, int64_t i, int has_lower)
{
    int64_t stride = i * 2, steps = i / 32;
    int rows = (int)((32 + steps - 1) / steps), written = 0;
    const bf16 *right = weights + 16 * i;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t c = 0; c < i; c += 32) {
        _tile_loadd(4, x + c, stride);
        _tile_loadd(6, weights + c * LANES, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, right + c * LANES, 64);
        _tile_dpbf16ps(1, 4, 7);
        if (has_lower) {
            _tile_loadd(5, x + 16 * i + c, stride);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
        for (int line = 0; line < lines; line++, after += 64)
            _mm_prefetch(after, _MM_HINT_T0);
        if (before)
            for (int end = written + rows < before->rows ? written + rows : before->rows; written < end; written++)
                store_row(before, written, width, is_gated);
    }
    _tile_stored(0, b->sums[0], 64);
    _tile_stored(1, b->sums[1], 64);
    if (has_lower) {
        _tile_stored(2, b->sums[2], 64);
        _tile_stored(3, b->sums[3], 64);
    }
    b->rows = has_lower ? 32 : 16;
}

/* Any number of rows up to 32 times 16 or 32 outputs. */
static void product_rest(const bf16 *x, const bf16 *weights, bf16 *out, int upper, int lower, int is_pair, int64_t width,
                         int is_gated, int64_t i)
{
    float sums[4][TILE_ELEMENTS / 2] __attribute__((aligned(64)));
    const bf16 *right = weights + 16 * i;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t c = 0; c < i; c += 32) {
        _tile_loadd(4, x + c, i * 2);
        _tile_loadd(6, weights + c * LANES, 64);
        _tile_dpbf16ps(0, 4, 6);
        if (is_pair) {
            _tile_loadd(7, right + c * LANES, 64);
            _tile_dpbf16ps(1, 4, 7);
        }
        if (lower) {
            _tile_loadd(5, x + 16 * i + c, i * 2);
            _tile_dpbf16ps(2, 5, 6);
            if (is_pair)
                _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, sums[0], 64);
    if (is_pair)
        _tile_stored(1, sums[1], 64);
    if (lower) {
        _tile_stored(2, sums[2], 64);
        if (is_pair)
            _tile_stored(3, sums[3], 64);
    }
    for (int row = 0; row < upper + lower; row++) {
        const float *left = sums[row / 16 * 2] + row % 16 * LANES;
        if (is_pair)
            store_halves(left, out + row * width, is_gated);
        else
            store_bf16(out + row * width, *(const vf *)left);
    }
}

/* out = x [M, I] weights^T, [M, O]; O a multiple of 16, I of 32. Gated: tiles of the gate's and the other outputs take
 * turns, and out is silu(gate) * other, [M, O / 2], O a multiple of 32. */
void product(const bf16 *x, const bf16 *packed, bf16 *out, int64_t m, int64_t o, int64_t i, int64_t is_gated)
{
    int upper = m < 16 ? (int)m : 16, lower = m < 32 ? (int)m - upper : 16;
    int64_t num_blocks = (m + 31) / 32, share = (i + num_blocks - 1) / num_blocks, width = is_gated ? o / 2 : o;
    int lines = (int)((share + i / 32 - 1) / (i / 32)), turn = 0;
    block blocks[2], *before = 0;
    configure((int[8]){upper, upper, lower, lower, upper, lower, 16, 16});
    for (int64_t left = 0; left < o; left += 32) {
        bf16 *to = out + (is_gated ? left / 2 : left);
        const char *next = left + 64 <= o ? (const char *)(packed + (left + 32) * i) : 0;
        for (int64_t row = 0; row < m; row += 32) {
            /* A rest is made up to 16 or 32 rows with rows that are done already. */
            int64_t rest = m - row <= 16 ? 16 : 32, first = m > 32 && row + rest > m ? m - rest : row;
            if (m < 32 || left + 32 > o) {
                first = m > 32 && row + 32 > m ? m - 32 : row;
                product_rest(x + first * i, packed + left * i, to + first * width, upper, lower, left + 32 <= o, width,
                             (int)is_gated, i);
                continue;
            }
            block *b = blocks + (turn++ & 1);
            const char *after = next + row / 32 * share * 64;
            if (rest == 32)
                product_block(x + first * i, packed + left * i, b, before, after, next ? lines : 0, width,
                              (int)is_gated, i, 1);
            else
                product_block(x + first * i, packed + left * i, b, before, after, next ? lines : 0, width,
                              (int)is_gated, i, 0);
            b->out = to + first * width;
            before = b;
        }
    }
    for (int row = 0; before && row < before->rows; row++)
        store_row(before, row, width, (int)is_gated);
    _tile_release();
}

typedef struct {
    const bf16 *qkv, *output, *gated, *down;
    const float *qk_norm;
    bf16 *keys, *values, *tap;
} layer;

typedef struct {
    int64_t hidden, inner, heads, key_heads, head_dim, capacity;
    float eps;
    const float *cos, *sin;
} shape;

int64_t pass_scratch_bytes(const shape *s, int64_t m)
{
    int64_t width = (s->heads + 2 * s->key_heads) * s->head_dim, mixed = s->heads * s->head_dim;
    return 2 * m * (width + mixed + s->hidden + s->inner) + attend_scratch_bytes(s->head_dim, s->capacity) + 8 * m + 1024;
}

/* Room for so many bytes, at the start of a line of the cache. */
static void *take(char **room, int64_t bytes)
{
    char *start = (char *)(((uintptr_t)*room + 63) / 64 * 64);
    *room = start + bytes;
    return start;
}

/* All layers over N new tokens of every row, or counts of them, see attend(), x being the residual stream [M, D]; normed is
 * what the head reads. Taps are [R, N], whatever the counts. The first layer's qkv is given where it does not come from x
 * alone. */
void run_layers(const layer *layers, int64_t num_layers, const shape *s, float *x, const bf16 *first_qkv, const int64_t *start,
                const int64_t *counts, bf16 *normed, int64_t tap_stride, int64_t r, int64_t n,
                char *scratch)
{
    int64_t m = counts ? 0 : r * n, width = (s->heads + 2 * s->key_heads) * s->head_dim, mixed_size = s->heads * s->head_dim;
    for (int64_t row = 0; counts && row < r; row++)
        m += counts[row];
    float *attention = take(&scratch, attend_scratch_bytes(s->head_dim, s->capacity));
    bf16 *qkv = take(&scratch, 2 * m * width), *mixed = take(&scratch, 2 * m * mixed_size),
         *delta = take(&scratch, 2 * m * s->hidden), *active = take(&scratch, 2 * m * s->inner);
    int64_t *tap_rows = counts ? take(&scratch, 8 * m) : 0, token = 0;
    for (int64_t row = 0; counts && row < r; row++)
        for (int64_t i = 0; i < counts[row]; i++)
            tap_rows[token++] = row * n + i;
    if (!first_qkv)
        add_norm(x, 0, normed, 0, 0, m, s->hidden, s->eps);
    for (int64_t index = 0; index < num_layers; index++) {
        const layer *l = layers + index;
        const bf16 *in = index == 0 && first_qkv ? first_qkv : qkv;
        if (in == qkv)
            product(normed, l->qkv, qkv, m, width, s->hidden, 0);
        attend(in, l->qk_norm, s->cos, s->sin, start, counts, l->keys, l->values, mixed, attention, r, n, s->heads,
               s->key_heads, s->head_dim, s->capacity, s->eps);
        product(mixed, l->output, delta, m, s->hidden, mixed_size, 0);
        add_norm(x, delta, normed, 0, 0, m, s->hidden, s->eps);
        product(normed, l->gated, active, m, 2 * s->inner, s->hidden, 1);
        product(active, l->down, delta, m, s->hidden, s->inner, 0);
        add_norm_to(x, delta, normed, l->tap, tap_stride, tap_rows, m, s->hidden, s->eps);
    }
}

/* A draft head of one layer that reads a token's embedding [V, D] and features of the policy, then its own last output.
 * Without join, side by side, the latter normed, the features being times fuse (EAGLE-3); the residual stream starts from
 * it as it is or, with carry [D], from that times the normed one. With join, their sum, the latter through a norm of its
 * own (feature_norm [D], carry [D]), normed again and times join (multi-token prediction). */
typedef struct {
    const bf16 *embedding, *fuse, *join, *head;
    const float *feature_norm, *carry;
    const int64_t *vocabulary; /* the token of each output of the head; 0: its index */
    int64_t num_features, num_outputs, num_tokens;
} draft_head;

int64_t draft_scratch_bytes(const shape *s, const draft_head *h, int64_t r, int64_t width)
{
    int64_t d = s->hidden, all = (s->heads + 2 * s->key_heads) * s->head_dim, m = r * width;
    int64_t reading = m * (h->num_features + 3 * d + 2 * s->key_heads * s->head_dim);
    int64_t drafting = r * (3 * d + all + h->num_outputs);
    return pass_scratch_bytes(s, r) + 2 * (reading + drafting) + 4 * r * (d + h->num_outputs) + 8 * r + 4 * s->head_dim + 1024;
}

/* normed = y / sqrt(mean(y^2) + eps), times weight where one is given, of y = a + b, or a where b is 0; x = y if wanted. */
static void norm_of(const bf16 *a, const bf16 *b, const float *weight, float *x, bf16 *normed, int64_t d, float eps)
{
    vf squares = {0};
    for (int64_t i = 0; i < d; i += LANES) {
        vf y = b ? load_bf16(a + i) + load_bf16(b + i) : load_bf16(a + i);
        squares += y * y;
        if (x)
            *(vf *)(x + i) = y;
    }
    float scale = inverse_root(sum_of(squares) * (1.0f / (float)d) + eps);
    for (int64_t i = 0; i < d; i += LANES) {
        vf y = (b ? load_bf16(a + i) + load_bf16(b + i) : load_bf16(a + i)) * scale;
        store_bf16(normed + i, weight ? y * *(const vf *)(weight + i) : y);
    }
}

/* x = normed * scale over a row. */
static void scaled(const bf16 *normed, const float *scale, float *x, int64_t d)
{
    for (int64_t i = 0; i < d; i += LANES)
        *(vf *)(x + i) = load_bf16(normed + i) * *(const vf *)(scale + i);
}

/* The head reads the first count features [P, F] of every row, the first of which stands at start and is followed by the
 * first of next_ids, and writes their keys and values. Of each row's last one: the residual stream x [R, D] and qkv. */
static void read_features(const layer *l, const shape *s, const draft_head *h, const bf16 *features, int64_t feature_stride,
                          const int64_t *next_ids, int64_t id_stride, const int64_t *start, const int64_t *count, float *x,
                          bf16 *qkv, int64_t r, char *room)
{
    int64_t d = s->hidden, e = s->head_dim, f = h->num_features, kv = 2 * s->key_heads * e, m = 0, in = h->join ? d : 2 * d;
    for (int64_t row = 0; row < r; row++)
        m += count[row];
    bf16 *taken = take(&room, 2 * m * f), *hidden = take(&room, 2 * m * d), *joined = take(&room, 2 * m * in),
         *written = take(&room, 2 * m * kv), *last = take(&room, 2 * r * in);
    bf16 *turned = take(&room, 2 * e);
    bf16 *to = taken;
    for (int64_t row = 0; row < r; row++)
        for (int64_t i = 0; i < count[row]; i++, to += f) {
            const bf16 *feature = features + row * feature_stride + i * f;
            if (h->join) {
                norm_of(feature, 0, h->feature_norm, 0, to, d, s->eps);
                norm_of(to, 0, 0, 0, to, d, s->eps);
            } else {
                memcpy(to, feature, f * sizeof(bf16));
            }
        }
    product(taken, h->join ? h->join : h->fuse, hidden, m, d, f, 0);
    bf16 *from = hidden;
    to = joined;
    for (int64_t row = 0; row < r; row++) {
        for (int64_t i = 0; i < count[row]; i++, from += d, to += in) {
            const bf16 *embedding = h->embedding + next_ids[row * id_stride + i] * d;
            float *stream = i == count[row] - 1 ? x + row * d : 0;
            if (h->join) {
                norm_of(embedding, from, 0, stream, to, d, s->eps);
            } else {
                memcpy(to, embedding, d * sizeof(bf16));
                norm_of(from, 0, 0, stream, to + d, d, s->eps);
                if (stream && h->carry)
                    scaled(to + d, h->carry, stream, d);
            }
        }
        memcpy(last + row * in, to - in, in * sizeof(bf16));
    }
    product(joined, l->qkv + s->heads * e * in, written, m, kv, in, 0);
    product(last, l->qkv, qkv, r, s->heads * e + kv, in, 0);
    for (int64_t row = 0; row < r; row++)
        for (int64_t i = 0; i < count[row]; i++, written += kv)
            for (int64_t head = 0; head < s->key_heads; head++) {
                int64_t of = (row * s->key_heads + head) * e * s->capacity;
                write_key(written + head * e, l->qk_norm ? l->qk_norm + (s->heads + head) * e : 0, s->cos, s->sin,
                          start[row] + i, l->keys + of, turned, e, s->eps);
                write_value(written + kv / 2 + head * e, start[row] + i, l->values + of, e);
            }
}

/* The input of a further step from the token drafted last and the output of the step before: x before the final norm and
 * normed after it, both [R, D]. The next residual stream goes to x, and its qkv. */
static void enter_step(const layer *l, const shape *s, const draft_head *h, const int64_t *last, float *x, bf16 *normed,
                       bf16 *joined, bf16 *qkv, int64_t r)
{
    int64_t d = s->hidden, width = (s->heads + 2 * s->key_heads) * s->head_dim;
    if (!h->join) {
        add_norm(x, 0, normed, 0, 0, r, d, s->eps);
        for (int64_t row = 0; row < r; row++) {
            memcpy(joined + row * 2 * d, h->embedding + last[row] * d, d * sizeof(bf16));
            memcpy(joined + row * 2 * d + d, normed + row * d, d * sizeof(bf16));
            if (h->carry)
                scaled(normed + row * d, h->carry, x + row * d, d);
        }
        product(joined, l->qkv, qkv, r, width, 2 * d, 0);
        return;
    }
    for (int64_t row = 0; row < r; row++)
        scaled(normed + row * d, h->carry, x + row * d, d);
    add_norm(x, 0, normed, 0, 0, r, d, s->eps);
    product(normed, h->join, joined, r, d, d, 0);
    for (int64_t row = 0; row < r; row++)
        for (int64_t i = 0; i < d; i += LANES)
            *(vf *)(x + row * d + i) = load_bf16(h->embedding + last[row] * d + i);
    add_norm(x, joined, normed, 0, 0, r, d, s->eps);
    product(normed, l->qkv, qkv, r, width, d, 0);
}

/* What the head proposes next, [R, V], and one token drawn from it for every row. outputs: room for R times its outputs. */
static void propose(const draft_head *h, const bf16 *logits, float sharpness, const float *uniforms, int64_t *tokens,
                    float *probs, float *outputs, int64_t r)
{
    if (!h->vocabulary) {
        softmax(logits, probs, r, h->num_tokens, sharpness);
    } else {
        softmax(logits, outputs, r, h->num_outputs, sharpness);
        memset(probs, 0, r * h->num_tokens * sizeof(float));
        for (int64_t row = 0; row < r; row++)
            for (int64_t i = 0; i < h->num_outputs; i++)
                probs[row * h->num_tokens + h->vocabulary[i]] = outputs[row * h->num_outputs + i];
    }
    draw(probs, uniforms, tokens, r, h->num_tokens);
}

/* A whole draft: the head reads what it has not read yet, see read_features(), then k tokens are drawn one after the other.
 * probs: [k, R, V]; tokens and uniforms: [k, R]. scratch: draft_scratch_bytes() bytes, width being the largest count. */
void draft(const layer *l, const shape *s, const draft_head *h, const bf16 *features, int64_t feature_stride,
           const int64_t *next_ids, int64_t id_stride, const int64_t *start, const int64_t *count, float sharpness,
           const float *uniforms, int64_t *tokens, float *probs, int64_t r, int64_t k, char *scratch)
{
    int64_t d = s->hidden, width = (s->heads + 2 * s->key_heads) * s->head_dim, v = h->num_tokens;
    int64_t *at = take(&scratch, 8 * r);
    float *x = take(&scratch, 4 * r * d), *outputs = take(&scratch, 4 * r * h->num_outputs);
    bf16 *joined = take(&scratch, 4 * r * d), *qkv = take(&scratch, 2 * r * width), *normed = take(&scratch, 2 * r * d),
         *logits = take(&scratch, 2 * r * h->num_outputs);
    char *room = take(&scratch, 0);
    read_features(l, s, h, features, feature_stride, next_ids, id_stride, start, count, x, qkv, r, room);
    for (int64_t row = 0; row < r; row++)
        at[row] = start[row] + count[row] - 1;
    for (int64_t step = 0; step < k; step++) {
        if (step > 0) {
            enter_step(l, s, h, tokens + (step - 1) * r, x, normed, joined, qkv, r);
            for (int64_t row = 0; row < r; row++)
                at[row]++;
        }
        run_layers(l, 1, s, x, qkv, at, 0, normed, 0, r, 1, room);
        product(normed, h->head, logits, r, h->num_outputs, d, 0);
        propose(h, logits, sharpness, uniforms + step * r, tokens + step * r, probs + step * r * v, outputs, r);
    }
}
#else
int64_t pass_scratch_bytes(const void *s, int64_t m) { return 0; }
int64_t draft_scratch_bytes(const void *s, const void *h, int64_t r, int64_t width) { return 0; }
void product(void) {}
void run_layers(void) {}
void draft(void) {}
#endif
