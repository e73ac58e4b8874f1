// Optimizer steps and gradient norms of a fully connected layer whose weight gradient is never written to memory:
// blocks of it are computed from its two factors and applied to the weights and their averages in the L1 cache.
//
// The arithmetic and its order are those of a written gradient (linear.cpp, optimizer.cpp). Inputs and outputs must
// be multiples of kBlock.
#include <vector>

#include "gradients.hpp"

// A parameter and its two moving averages; filled in by Python.
struct Parameter {
    float *weight, *mean, *mean_square;
};

namespace {

// DeepMind's RMSProp, as `rmsprop` in optimizer.cpp.
class RmsProp {
  public:
    static constexpr size_t kConstants = 5;

    explicit RmsProp(const float* constants) {
        for (size_t i = 0; i < kConstants; ++i) constants_[i] = splat(constants[i]);
    }
    ALWAYS_INLINE void update(vec d, float* weight, float* mean, float* mean_square) const {
        const auto [learning_rate, epsilon, mean_smoothing, square_decay, square_smoothing] = constants_;
        const vec before = load(mean);
        const vec g = before + mean_smoothing * (d - before);
        const vec n = load(mean_square) * square_decay + square_smoothing * d * d;
        store(mean, g);
        store(mean_square, n);
        store(weight, load(weight) - learning_rate * d / square_root(rectified(n - g * g) + epsilon));
    }

  private:
    vec constants_[kConstants];
};

// Adam, as `adam` in optimizer.cpp.
class Adam {
  public:
    static constexpr size_t kConstants = 6;

    explicit Adam(const float* constants) {
        for (size_t i = 0; i < kConstants; ++i) constants_[i] = splat(constants[i]);
    }
    ALWAYS_INLINE void update(vec d, float* weight, float* mean, float* mean_square) const {
        const auto [learning_rate, epsilon, mean_smoothing, square_decay, square_smoothing, bias_correction2_sqrt] =
            constants_;
        const vec before = load(mean);
        const vec m = before + mean_smoothing * (d - before);
        const vec v = load(mean_square) * square_decay + square_smoothing * d * d;
        store(mean, m);
        store(mean_square, v);
        store(weight, load(weight) - learning_rate * m / (square_root(v) / bias_correction2_sqrt + epsilon));
    }

  private:
    vec constants_[kConstants];
};

// The noise of a layer's inputs and outputs; null without noise.
struct Noise {
    const float *in, *out;

    vec at(size_t n, size_t k) const { return load(in + k) * splat(out[n]); }
};

constexpr size_t kStrip = 8;  // rows of weights at a time; with more, prefetched lines are evicted from the L1 cache

template <class Unit, class Rule>
void step(const GradientFactors<Unit>& factors, size_t inputs, size_t outputs, Noise noise, float scale,
          const Parameter* parameters, const Rule& rule) {
    const vec scales = splat(scale);
    for_each_band(inputs, [&](size_t begin, size_t end) { factors.pack_x(begin, end); });
    for_each_piece(outputs / kStrip, [&](size_t strip) {
        const typename Unit::Scope scope(kStrip);
        const size_t n = strip * kStrip;
        alignas(64) float gradient[kStrip * kBand];
        for (size_t begin = 0; begin < inputs; begin += kBand) {
            const size_t end = std::min(begin + kBand, inputs);
            for (size_t k = begin; k < end; k += kBlock) {
                for (size_t at = 0; at < kStrip * kBlock; at += kLine) {
                    const size_t to = (n + at / kBlock) * inputs + k + at % kBlock;
                    for (size_t i = 0; i < (noise.in ? 2 : 1); ++i)
                        prefetch_to_write(parameters[i].weight + to), prefetch_to_write(parameters[i].mean + to),
                            prefetch_to_write(parameters[i].mean_square + to);
                }
                const word* panel = factors.panels + k * factors.row_words;
                Unit::products(factors.gradient_columns.from(n), kStrip, {factors.row_words}, panel,
                               panel + factors.row_words * kLanes, gradient + k - begin, kBand);
            }
            for (size_t row = 0; row < kStrip; ++row)
                for (size_t k = begin; k < end; k += kLanes) {
                    const vec product = load(gradient + row * kBand + k - begin);
                    const size_t to = (n + row) * inputs + k;
                    const auto update = [&](const Parameter& parameter, vec d) {
                        rule.update(d * scales, parameter.weight + to, parameter.mean + to,
                                    parameter.mean_square + to);
                    };
                    update(parameters[0], product);
                    if (noise.in) update(parameters[1], product * noise.at(n + row, k));
                }
        }
    });
}

// Computes the lower triangle of the Gram matrix x xᵀ [count, count], and that of x diag(noise²) xᵀ.
template <class Format>
void gram_matrix(const typename Format::value* x, size_t count, size_t columns, const float* noise, double* grams,
                 double* noisy_grams) {
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
                const vec n0 = load(noise + k), n1 = load(noise + k + kLanes);
                c = multiply_add(x0, n0 * n0, c), d = multiply_add(x1, n1 * n1, d);
            }
            grams[i * count + j] = sum(a + b);
            noisy_grams[i * count + j] = sum(c + d);
        }
    });
}

// Computes the sum of squares of a gradient from the Gram matrices of its factors:
// ‖upstreamᵀ x‖² = Σᵢⱼ (x xᵀ)ᵢⱼ (upstream upstreamᵀ)ᵢⱼ.
template <class Format>
double sum_of_squares(const typename Format::value* x, const typename Format::value* upstream, size_t count,
                      size_t inputs, size_t outputs, Noise noise) {
    const size_t pairs = count * count;
    std::vector<double> grams(4 * pairs);
    double *x_gram = grams.data(), *noisy_x_gram = x_gram + pairs, *upstream_gram = noisy_x_gram + pairs,
           *noisy_upstream_gram = upstream_gram + pairs;
    gram_matrix<Format>(x, count, inputs, noise.in, x_gram, noisy_x_gram);
    gram_matrix<Format>(upstream, count, outputs, noise.out, upstream_gram, noisy_upstream_gram);
    double total = 0;
    for (size_t i = 0; i < count; ++i)
        for (size_t j = 0; j <= i; ++j) {
            const size_t at = i * count + j;
            const double each =
                x_gram[at] * upstream_gram[at] + (noise.in ? noisy_x_gram[at] * noisy_upstream_gram[at] : 0);
            total += i == j ? each : 2 * each;
        }
    return total < 0 ? 0 : total;  // may be negative by rounding; NaN stays NaN
}

}  // namespace

// Updates weights by the gradient upstreamᵀ x · scale: parameters[0], and for a noisy layer the deviations in
// parameters[1]. `rule` is 0 for RMSProp and 1 for Adam, `constants` the numbers that the function in optimizer.cpp
// takes, in its order.
extern "C" void step_by_product(int unit, const void* x, const void* upstream, std::int64_t batch,
                                std::int64_t inputs, std::int64_t outputs, const float* noise_in,
                                const float* noise_out, float scale, const Parameter* parameters, int rule,
                                const float* constants) {
    with_unit(unit, [&](auto chosen) {
        using Unit = decltype(chosen);
        using value = typename Unit::value;
        const GradientFactors<Unit> factors(static_cast<const value*>(x), static_cast<const value*>(upstream), batch,
                                            inputs, outputs);
        const Noise noise{noise_in, noise_out};
        if (rule == 0) step(factors, inputs, outputs, noise, scale, parameters, RmsProp(constants));
        if (rule == 1) step(factors, inputs, outputs, noise, scale, parameters, Adam(constants));
    });
}

// Computes the sum of squares of the unscaled gradient, of means and deviations, without writing it.
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
