/* What lies between the matrix products of a decoding pass, each in one sweep over its data.
 *
 * Plain C with GCC's vector types, so that any processor's compiler can vectorise it; workers/rollout/native/library.py
 * compiles it where a compiler is there. workers/rollout/ops.py has the same operations in PyTorch, and says what each
 * computes. bfloat16 is kept as its 16 bits; every sum is taken in float.
 *
 * M tokens = R rows of N new tokens each, D hidden size, I inner size, H query heads, K key and value heads, E head
 * dimension (a multiple of 32), T capacity of a row in the cache (a multiple of 16), V vocabulary.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

#define LANES 16
#define QUERY_BLOCK 16 /* new tokens of a row whose scores are kept at a time */

typedef float vf __attribute__((vector_size(4 * LANES), aligned(4)));
typedef uint32_t vu __attribute__((vector_size(4 * LANES), aligned(4)));
typedef int32_t vi __attribute__((vector_size(4 * LANES), aligned(4)));
typedef uint16_t vh __attribute__((vector_size(2 * LANES), aligned(2)));
typedef uint16_t bf16;

static inline vf splat(float x) { return x - (vf){0}; }

static inline vf load_bf16(const bf16 *p)
{
    vu bits = __builtin_convertvector(*(const vh *)p, vu) << 16;
    return (vf)bits;
}

static inline void store_bf16(bf16 *p, vf x) /* to the nearest, ties to even; NaN stays NaN */
{
#ifdef __AVX512BF16__
    *(__m256bh *)p = _mm512_cvtneps_pbh((__m512)x);
#else
    vu bits = (vu)x;
    vu rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    vu is_nan = (vu)(x != x);
    *(vh *)p = __builtin_convertvector((rounded & ~is_nan) | (is_nan & 0x7fc0), vh);
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
    float s = 0;
    for (int i = 0; i < LANES; i++)
        s += x[i];
    return s;
}

static inline vf choose(vi where, vf a, vf b) { return (vf)((where & (vi)a) | (~where & (vi)b)); }

static inline vf reciprocal(vf x) /* divisions of whole vectors are slow */
{
#ifdef __AVX512F__
    vf y = (vf)_mm512_rcp14_ps((__m512)x);
    return y * (2.0f - x * y);
#else
    return 1.0f / x;
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

/* x += delta where there is one; normed = x / sqrt(mean(x^2) + eps); tap = x where it is wanted. */
void add_norm(float *x, const bf16 *delta, bf16 *normed, bf16 *tap, int64_t tap_stride, int64_t m, int64_t d, float eps)
{
    for (int64_t row = 0; row < m; row++) {
        float *xr = x + row * d;
        vf squares = {0};
        for (int64_t i = 0; i < d; i += LANES) {
            vf v = *(vf *)(xr + i);
            if (delta) {
                v += load_bf16(delta + row * d + i);
                *(vf *)(xr + i) = v;
            }
            squares += v * v;
            if (tap)
                store_bf16(tap + row * tap_stride + i, v);
        }
        float scale = 1.0f / sqrtf(sum_of(squares) / (float)d + eps);
        if (normed)
            for (int64_t i = 0; i < d; i += LANES)
                store_bf16(normed + row * d + i, *(vf *)(xr + i) * scale);
    }
}

/* silu(gate) * up, gate_up holding both side by side. */
void silu_mul(const bf16 *gate_up, bf16 *out, int64_t m, int64_t inner)
{
    for (int64_t row = 0; row < m; row++) {
        const bf16 *gate = gate_up + row * 2 * inner, *up = gate + inner;
        for (int64_t i = 0; i < inner; i += LANES) {
            vf g = load_bf16(gate + i);
            store_bf16(out + row * inner + i, g * reciprocal(1.0f + exp_vf(-g)) * load_bf16(up + i));
        }
    }
}

/* One head: normed where a weight is given, turned by its position. */
static inline void turn_head(const bf16 *in, const float *weight, const float *cos, const float *sin, float eps,
                             int64_t e, float *out)
{
    float scale = 1.0f;
    int64_t half = e / 2;
    if (weight) {
        vf squares = {0};
        for (int64_t i = 0; i < e; i += LANES) {
            vf v = load_bf16(in + i);
            squares += v * v;
        }
        scale = 1.0f / sqrtf(sum_of(squares) / (float)e + eps);
    }
    for (int64_t i = 0; i < half; i += LANES) {
        vf a = load_bf16(in + i) * scale, b = load_bf16(in + half + i) * scale;
        if (weight) {
            a *= *(const vf *)(weight + i);
            b *= *(const vf *)(weight + half + i);
        }
        *(vf *)(out + i) = a * *(const vf *)(cos + i) - b * *(const vf *)(sin + i);
        *(vf *)(out + half + i) = b * *(const vf *)(cos + half + i) + a * *(const vf *)(sin + half + i);
    }
}

/* Scores of up to 8 queries against all keys up to span, a tile of 16 positions at a time. */
static inline void score_block(const float *q, int count, const bf16 *keys, int64_t span, int64_t t, int64_t e,
                               float *scores)
{
    for (int64_t s = 0; s < span; s += LANES) {
        vf sums[8] = {0};
        for (int64_t c = 0; c < e; c++) {
            vf key = load_bf16(keys + s * e + c * LANES);
            for (int j = 0; j < 8; j++)
                if (j < count)
                    sums[j] += key * q[j * e + c];
        }
        for (int j = 0; j < count; j++)
            *(vf *)(scores + j * t + s) = sums[j];
    }
}

/* out = softmax(scores up to limit) v for one query. */
static inline void softmax_row(float *scores, int64_t limit, int64_t span)
{
    int64_t i;
    for (i = limit; i < ((span + LANES - 1) / LANES) * LANES; i++)
        scores[i] = -INFINITY;
    vf tops = *(vf *)scores;
    for (i = LANES; i < limit; i += LANES)
        tops = choose(*(vf *)(scores + i) > tops, *(vf *)(scores + i), tops);
    float top = tops[0];
    for (i = 1; i < LANES; i++)
        top = tops[i] > top ? tops[i] : top;
    vf total = {0};
    for (i = 0; i < span; i += LANES) {
        vf w = exp_vf(*(vf *)(scores + i) - top);
        *(vf *)(scores + i) = w;
        total += w;
    }
    float scale = 1.0f / sum_of(total);
    for (i = 0; i < span; i += LANES)
        *(vf *)(scores + i) *= scale;
}

/* Mix values of 4 queries at a time over 64 channels at a time. */
static inline void mix_block(const float *weights, int count, const bf16 *values, int64_t span, int64_t t, int64_t e,
                             float *out)
{
    for (int64_t c = 0; c < e; c += 2 * LANES) {
        vf low[8] = {0}, high[8] = {0};
        for (int64_t s = 0; s < span; s++) {
            vf a = load_bf16(values + s * e + c), b = load_bf16(values + s * e + c + LANES);
            for (int j = 0; j < 8; j++)
                if (j < count) {
                    low[j] += a * weights[j * t + s];
                    high[j] += b * weights[j * t + s];
                }
        }
        for (int j = 0; j < count; j++) {
            *(vf *)(out + j * e + c) = low[j];
            *(vf *)(out + j * e + c + LANES) = high[j];
        }
    }
}

/* Puts N new tokens of every row into the cache at start .. start + N - 1 and, where out is given, attends.
 *
 * qkv: [R, N, (H + 2 K) E]. keys: [R, K, T / 16, E, 16]; values: [R, K, T, E]. scratch: see attend_scratch_floats().
 */
void attend(const bf16 *qkv, const float *qk_norm, const float *cos, const float *sin, const int64_t *start, bf16 *keys,
            bf16 *values, bf16 *out, float *scratch, int64_t r, int64_t n, int64_t h, int64_t k, int64_t e, int64_t t,
            float eps)
{
    int64_t groups = h / k, width = (h + 2 * k) * e;
    float *turned = scratch, *q = turned + e, *scores = q + QUERY_BLOCK * groups * e,
          *mixed = scores + QUERY_BLOCK * groups * t;
    for (int64_t row = 0; row < r; row++) {
        bf16 *row_keys = keys + row * k * e * t, *row_values = values + row * k * t * e;
        for (int64_t i = 0; i < n; i++) {
            int64_t at = start[row] + i;
            const bf16 *token = qkv + (row * n + i) * width;
            for (int64_t head = 0; head < k; head++) {
                turn_head(token + (h + head) * e, qk_norm ? qk_norm + (h + head) * e : 0, cos + at * e, sin + at * e,
                          eps, e, turned);
                for (int64_t c = 0; c < e; c++)
                    row_keys[head * e * t + (at / LANES * e + c) * LANES + at % LANES] = to_bf16(turned[c]);
                memcpy(row_values + (head * t + at) * e, token + (h + k + head) * e, e * sizeof(bf16));
            }
        }
        if (!out)
            continue;
        for (int64_t head = 0; head < k; head++)
            for (int64_t first = 0; first < n; first += QUERY_BLOCK) {
                int64_t count = n - first < QUERY_BLOCK ? n - first : QUERY_BLOCK, num_queries = count * groups;
                int64_t span = start[row] + first + count;
                for (int64_t i = 0; i < count; i++)
                    for (int64_t g = 0; g < groups; g++) {
                        int64_t at = start[row] + first + i, of = head * groups + g;
                        turn_head(qkv + (row * n + first + i) * width + of * e, qk_norm ? qk_norm + of * e : 0,
                                  cos + at * e, sin + at * e, eps, e, q + (i * groups + g) * e);
                    }
                for (int64_t j = 0; j < num_queries; j += 8) {
                    int some = num_queries - j < 8 ? (int)(num_queries - j) : 8;
                    float *block = scores + j * t;
                    switch (some) { /* constant counts let the compiler keep the sums in registers */
                    case 8: score_block(q + j * e, 8, row_keys + head * e * t, span, t, e, block); break;
                    case 4: score_block(q + j * e, 4, row_keys + head * e * t, span, t, e, block); break;
                    case 2: score_block(q + j * e, 2, row_keys + head * e * t, span, t, e, block); break;
                    default: score_block(q + j * e, some, row_keys + head * e * t, span, t, e, block);
                    }
                    for (int l = 0; l < some; l++)
                        softmax_row(block + l * t, start[row] + first + (j + l) / groups + 1, span);
                    switch (some) {
                    case 8: mix_block(block, 8, row_values + head * t * e, span, t, e, mixed); break;
                    case 4: mix_block(block, 4, row_values + head * t * e, span, t, e, mixed); break;
                    case 2: mix_block(block, 2, row_values + head * t * e, span, t, e, mixed); break;
                    default: mix_block(block, some, row_values + head * t * e, span, t, e, mixed);
                    }
                    for (int l = 0; l < some; l++) {
                        int64_t i = first + (j + l) / groups, of = head * groups + (j + l) % groups;
                        bf16 *to = out + ((row * n + i) * h + of) * e;
                        for (int64_t c = 0; c < e; c += LANES)
                            store_bf16(to + c, *(vf *)(mixed + l * e + c));
                    }
                }
            }
    }
}

int64_t attend_scratch_floats(int64_t h, int64_t k, int64_t e, int64_t t)
{
    int64_t queries = QUERY_BLOCK * (h / k);
    return e + queries * e + queries * t + 8 * e;
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
        for (i = 0; i < LANES; i++)
            top = tops[i] > top ? tops[i] : top;
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
