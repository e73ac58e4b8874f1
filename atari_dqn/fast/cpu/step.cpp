// What an optimizer does with a fully connected layer's weights whose gradient is written nowhere: made block by block
// of its two sides, it meets the weights and their averages in a core's nearest cache.
//
// The same arithmetic in the same order as of a gradient that is written (linear.cpp, optimizer.cpp). Inputs and
// outputs: a multiple of 32.
#include <vector>

#include "gradients.hpp"

// A weight and its two averages; as Python fills it in.
struct Moved {
    float *weight, *mean, *mean_square;
};

namespace {

// DeepMind's RMSProp: `rmsprop` in optimizer.cpp.
class RmsProp {
  public:
    static constexpr size_t kNumbers = 5;

    explicit RmsProp(const float* numbers) {
        for (size_t i = 0; i < kNumbers; ++i) number_[i] = _mm512_set1_ps(numbers[i]);
    }
    ALWAYS_INLINE void move(__m512 d, float* weight, float* mean, float* mean_square) const {
        const auto [rate, epsilon, of_gradient, decay, of_square] = number_;
        const __m512 before = _mm512_loadu_ps(mean);
        const __m512 g = _mm512_add_ps(before, _mm512_mul_ps(of_gradient, _mm512_sub_ps(d, before)));
        const __m512 n = _mm512_add_ps(_mm512_mul_ps(_mm512_loadu_ps(mean_square), decay),
                                       _mm512_mul_ps(_mm512_mul_ps(of_square, d), d));
        const __m512 under = _mm512_add_ps(_mm512_sub_ps(n, _mm512_mul_ps(g, g)), epsilon);
        _mm512_storeu_ps(mean, g);
        _mm512_storeu_ps(mean_square, n);
        const __m512 by = _mm512_div_ps(_mm512_mul_ps(rate, d), _mm512_sqrt_ps(under));
        _mm512_storeu_ps(weight, _mm512_sub_ps(_mm512_loadu_ps(weight), by));
    }

  private:
    __m512 number_[kNumbers];
};

// Adam: `adam` in optimizer.cpp.
class Adam {
  public:
    static constexpr size_t kNumbers = 6;

    explicit Adam(const float* numbers) {
        for (size_t i = 0; i < kNumbers; ++i) number_[i] = _mm512_set1_ps(numbers[i]);
    }
    ALWAYS_INLINE void move(__m512 d, float* weight, float* mean, float* mean_square) const {
        const auto [rate, epsilon, of_gradient, decay, of_square, root] = number_;
        const __m512 before = _mm512_loadu_ps(mean);
        const __m512 m = _mm512_add_ps(before, _mm512_mul_ps(of_gradient, _mm512_sub_ps(d, before)));
        const __m512 v = _mm512_add_ps(_mm512_mul_ps(_mm512_loadu_ps(mean_square), decay),
                                       _mm512_mul_ps(_mm512_mul_ps(of_square, d), d));
        const __m512 under = _mm512_add_ps(_mm512_div_ps(_mm512_sqrt_ps(v), root), epsilon);
        _mm512_storeu_ps(mean, m);
        _mm512_storeu_ps(mean_square, v);
        const __m512 by = _mm512_div_ps(_mm512_mul_ps(rate, m), under);
        _mm512_storeu_ps(weight, _mm512_sub_ps(_mm512_loadu_ps(weight), by));
    }

  private:
    __m512 number_[kNumbers];
};

// The noise of a layer's weights; none if null.
struct Noise {
    const float *in, *out;

    __m512 of(size_t n, size_t k) const { return _mm512_mul_ps(_mm512_loadu_ps(in + k), _mm512_set1_ps(out[n])); }
};

constexpr size_t kStrip = 8;  // rows of weights at a time: with more, what is asked for leaves the nearest cache

template <class Unit, class Rule>
void step(const Sides<Unit>& sides, size_t inputs, size_t outputs, Noise noise, float scale, const Moved* moved,
          const Rule& rule) {
    const __m512 scales = _mm512_set1_ps(scale);
#pragma omp parallel
    {
        const typename Unit::Scope scope(kStrip);
        alignas(64) float made[kStrip * kBand];
#pragma omp for schedule(static)
        for (size_t begin = 0; begin < inputs; begin += kBand) sides.place(begin, std::min(begin + kBand, inputs));
#pragma omp for schedule(static)
        for (size_t n = 0; n < outputs; n += kStrip)
            for (size_t begin = 0; begin < inputs; begin += kBand) {
                const size_t end = std::min(begin + kBand, inputs);
                for (size_t k = begin; k < end; k += kBlock) {
                    for (size_t at = 0; at < kStrip * kBlock; at += kSide) {
                        const size_t to = (n + at / kBlock) * inputs + k + at % kBlock;
                        for (size_t i = 0; i < (noise.in ? 2 : 1); ++i)
                            ask_to_write(moved[i].weight + to), ask_to_write(moved[i].mean + to),
                                ask_to_write(moved[i].mean_square + to);
                    }
                    const word* panel = sides.panels + k * sides.row_words;
                    Unit::products(sides.of_outputs.from(n), kStrip, {sides.row_words}, panel,
                                   panel + sides.row_words * kSide, made + k - begin, kBand);
                }
                for (size_t row = 0; row < kStrip; ++row)
                    for (size_t k = begin; k < end; k += kSide) {
                        const __m512 product = _mm512_load_ps(made + row * kBand + k - begin);
                        const size_t to = (n + row) * inputs + k;
                        const auto move = [&](const Moved& of, __m512 d) {
                            rule.move(_mm512_mul_ps(d, scales), of.weight + to, of.mean + to, of.mean_square + to);
                        };
                        move(moved[0], product);
                        if (noise.in) move(moved[1], _mm512_mul_ps(product, noise.of(n + row, k)));
                    }
            }
    }
}

// Of each pair of rows the sum of their products; in a second sum each counts times its column's noise squared.
template <class Format>
void add_pairs(const typename Format::value* x, size_t count, size_t columns, const float* noise, double* sums,
               double* noisy_sums) {
#pragma omp for schedule(static, 1)
    for (size_t i = 0; i < count; ++i)
        for (size_t j = 0; j <= i; ++j) {
            __m512 a = _mm512_setzero_ps(), b = a, c = a, d = a;
            for (size_t k = 0; k < columns; k += kBlock) {
                __m512 x0, x1, y0, y1;
                Format::load(x + i * columns + k, x0, x1);
                Format::load(x + j * columns + k, y0, y1);
                x0 = _mm512_mul_ps(x0, y0), x1 = _mm512_mul_ps(x1, y1);
                a = _mm512_add_ps(a, x0), b = _mm512_add_ps(b, x1);
                if (!noise) continue;
                const __m512 n0 = _mm512_loadu_ps(noise + k), n1 = _mm512_loadu_ps(noise + k + kSide);
                c = _mm512_fmadd_ps(x0, _mm512_mul_ps(n0, n0), c), d = _mm512_fmadd_ps(x1, _mm512_mul_ps(n1, n1), d);
            }
            sums[i * count + j] = _mm512_reduce_add_ps(_mm512_add_ps(a, b));
            noisy_sums[i * count + j] = _mm512_reduce_add_ps(_mm512_add_ps(c, d));
        }
}

// What the squares of all of a gradient's numbers add up to: of two rows' products of each side, the products.
template <class Format>
double sum_of_squares(const typename Format::value* x, const typename Format::value* upstream, size_t count,
                      size_t inputs, size_t outputs, Noise noise) {
    const size_t pairs = count * count;
    std::vector<double> sums(4 * pairs);
    double *seen = sums.data(), *noisy_seen = seen + pairs, *up = noisy_seen + pairs, *noisy_up = up + pairs;
#pragma omp parallel
    {
        add_pairs<Format>(x, count, inputs, noise.in, seen, noisy_seen);
        add_pairs<Format>(upstream, count, outputs, noise.out, up, noisy_up);
    }
    double total = 0;
    for (size_t i = 0; i < count; ++i)
        for (size_t j = 0; j <= i; ++j) {
            const size_t at = i * count + j;
            const double each = seen[at] * up[at] + (noise.in ? noisy_seen[at] * noisy_up[at] : 0);
            total += i == j ? each : 2 * each;
        }
    return total < 0 ? 0 : total;  // rounding; NaN stays
}

}  // namespace

// Moves weights by the gradient upstreamᵀ x times `scale`: `moved`, and behind it, under noise, their deviations.
// `rule` is 0 for RMSProp and 1 for Adam, `numbers` what optimizer.cpp's functions of these names take.
extern "C" void step_by_product(int unit, const void* x, const void* upstream, std::int64_t batch,
                                std::int64_t inputs, std::int64_t outputs, const float* noise_in,
                                const float* noise_out, float scale, const Moved* moved, int rule,
                                const float* numbers) {
    with_unit(unit, [&](auto chosen) {
        using Unit = decltype(chosen);
        using value = typename Unit::value;
        const Sides<Unit> sides(static_cast<const value*>(x), nullptr, static_cast<const value*>(upstream), batch,
                                inputs, outputs);
        const Noise noise{noise_in, noise_out};
        if (rule == 0) step(sides, inputs, outputs, noise, scale, moved, RmsProp(numbers));
        if (rule == 1) step(sides, inputs, outputs, noise, scale, moved, Adam(numbers));
    });
}

// The sum of that gradient's squares, of means and deviations, without writing it.
extern "C" double squares_of_product(int unit, const void* x, const void* upstream, std::int64_t batch,
                                     std::int64_t inputs, std::int64_t outputs, const float* noise_in,
                                     const float* noise_out) {
    double sum = 0;
    with_unit(unit, [&](auto chosen) {
        using value = typename decltype(chosen)::value;
        sum = sum_of_squares<typename decltype(chosen)::Format>(static_cast<const value*>(x),
                                                                static_cast<const value*>(upstream), batch, inputs,
                                                                outputs, {noise_in, noise_out});
    });
    return sum;
}
