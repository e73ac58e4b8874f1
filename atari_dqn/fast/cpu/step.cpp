// What an optimizer does with a fully connected layer's weights whose gradient is written nowhere: made block by block
// of its two sides, it meets the weights and their averages in a core's nearest cache.
//
// The same arithmetic in the same order as of a gradient that is written (linear.cpp, optimizer.cpp). Inputs and
// outputs: a multiple of kBlock.
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
        for (size_t i = 0; i < kNumbers; ++i) number_[i] = splat(numbers[i]);
    }
    ALWAYS_INLINE void move(vec d, float* weight, float* mean, float* mean_square) const {
        const auto [rate, epsilon, of_gradient, decay, of_square] = number_;
        const vec before = load(mean);
        const vec g = before + of_gradient * (d - before);
        const vec n = load(mean_square) * decay + of_square * d * d;
        store(mean, g);
        store(mean_square, n);
        store(weight, load(weight) - rate * d / root(n - g * g + epsilon));
    }

  private:
    vec number_[kNumbers];
};

// Adam: `adam` in optimizer.cpp.
class Adam {
  public:
    static constexpr size_t kNumbers = 6;

    explicit Adam(const float* numbers) {
        for (size_t i = 0; i < kNumbers; ++i) number_[i] = splat(numbers[i]);
    }
    ALWAYS_INLINE void move(vec d, float* weight, float* mean, float* mean_square) const {
        const auto [rate, epsilon, of_gradient, decay, of_square, correction] = number_;
        const vec before = load(mean);
        const vec m = before + of_gradient * (d - before);
        const vec v = load(mean_square) * decay + of_square * d * d;
        store(mean, m);
        store(mean_square, v);
        store(weight, load(weight) - rate * m / (root(v) / correction + epsilon));
    }

  private:
    vec number_[kNumbers];
};

// The noise of a layer's weights; none if null.
struct Noise {
    const float *in, *out;

    vec of(size_t n, size_t k) const { return load(in + k) * splat(out[n]); }
};

constexpr size_t kStrip = 8;  // rows of weights at a time: with more, what is asked for leaves the nearest cache

template <class Unit, class Rule>
void step(const Sides<Unit>& sides, size_t inputs, size_t outputs, Noise noise, float scale, const Moved* moved,
          const Rule& rule) {
    const vec scales = splat(scale);
    for_each_band(inputs, [&](size_t begin, size_t end) { sides.place(begin, end); });
    for_each_piece(outputs / kStrip, [&](size_t strip) {
        const typename Unit::Scope scope(kStrip);
        const size_t n = strip * kStrip;
        alignas(64) float made[kStrip * kBand];
        for (size_t begin = 0; begin < inputs; begin += kBand) {
            const size_t end = std::min(begin + kBand, inputs);
            for (size_t k = begin; k < end; k += kBlock) {
                for (size_t at = 0; at < kStrip * kBlock; at += kLine) {
                    const size_t to = (n + at / kBlock) * inputs + k + at % kBlock;
                    for (size_t i = 0; i < (noise.in ? 2 : 1); ++i)
                        prefetch_to_write(moved[i].weight + to), prefetch_to_write(moved[i].mean + to),
                            prefetch_to_write(moved[i].mean_square + to);
                }
                const word* panel = sides.panels + k * sides.row_words;
                Unit::products(sides.of_outputs.from(n), kStrip, {sides.row_words}, panel,
                               panel + sides.row_words * kSide, made + k - begin, kBand);
            }
            for (size_t row = 0; row < kStrip; ++row)
                for (size_t k = begin; k < end; k += kSide) {
                    const vec product = load(made + row * kBand + k - begin);
                    const size_t to = (n + row) * inputs + k;
                    const auto move = [&](const Moved& of, vec d) {
                        rule.move(d * scales, of.weight + to, of.mean + to, of.mean_square + to);
                    };
                    move(moved[0], product);
                    if (noise.in) move(moved[1], product * noise.of(n + row, k));
                }
        }
    });
}

// Of each pair of rows the sum of their products; in a second sum each counts times its column's noise squared.
template <class Format>
void add_pairs(const typename Format::value* x, size_t count, size_t columns, const float* noise, double* sums,
               double* noisy_sums) {
    for_each_piece(count, [&](size_t i) {
        for (size_t j = 0; j <= i; ++j) {
            vec a = vec{}, b = a, c = a, d = a;
            for (size_t k = 0; k < columns; k += kBlock) {
                vec x0, x1, y0, y1;
                Format::load(x + i * columns + k, x0, x1);
                Format::load(x + j * columns + k, y0, y1);
                x0 *= y0, x1 *= y1;
                a += x0, b += x1;
                if (!noise) continue;
                const vec n0 = load(noise + k), n1 = load(noise + k + kSide);
                c = multiply_add(x0, n0 * n0, c), d = multiply_add(x1, n1 * n1, d);
            }
            sums[i * count + j] = sum(a + b);
            noisy_sums[i * count + j] = sum(c + d);
        }
    });
}

// What the squares of all of a gradient's numbers add up to: of two rows' products of each side, the products.
template <class Format>
double sum_of_squares(const typename Format::value* x, const typename Format::value* upstream, size_t count,
                      size_t inputs, size_t outputs, Noise noise) {
    const size_t pairs = count * count;
    std::vector<double> sums(4 * pairs);
    double *below = sums.data(), *noisy_below = below + pairs, *above = noisy_below + pairs, *noisy_above = above + pairs;
    add_pairs<Format>(x, count, inputs, noise.in, below, noisy_below);
    add_pairs<Format>(upstream, count, outputs, noise.out, above, noisy_above);
    double total = 0;
    for (size_t i = 0; i < count; ++i)
        for (size_t j = 0; j <= i; ++j) {
            const size_t at = i * count + j;
            const double each = below[at] * above[at] + (noise.in ? noisy_below[at] * noisy_above[at] : 0);
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
        const Sides<Unit> sides(static_cast<const value*>(x), static_cast<const value*>(upstream), batch,
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
