// Fully connected layers, plain and noisy, forward and backward.
//
// The weights, by far the most data, are read once, in place. Noisy weights are computed from means and deviations
// piece by piece in the cache of one core, just before they are read (weights.hpp). The inputs must be a multiple of
// kBlock, and so must the outputs, except for fp32 vectors, which take any number from kBlock on.
#include <algorithm>
#include <cstring>

#include "calls.hpp"
#include "weights.hpp"

namespace {

// Calls `run(n)` for each block of kBlock outputs, shared among threads. The last block may overlap its neighbour;
// one thread computes both, so that the shared outputs are written twice with the same values.
template <class Run>
void for_each_block(size_t outputs, const Run& run) {
    for_each_piece(outputs / kBlock, [&](size_t block) {
        run(block * kBlock);
        if (block + 1 == outputs / kBlock && outputs % kBlock) run(outputs - kBlock);
    });
}

// For few rows: computes dot products with the rows of the weights in place, four rows of weights at a time.
template <class Unit>
void multiply_few_rows(const typename Unit::value* x, const PlainWeights<Unit>& weights, const float* bias,
                       size_t count, bool relu, typename Unit::value* y) {
    using Format = typename Unit::Format;
    const size_t words = weights.k_size / Format::kPerWord, n_size = weights.n_size;
    const word* rows = reinterpret_cast<const word*>(x);
    for_each_block(n_size, [&](size_t n) {
        alignas(64) float products[Unit::kFewRows][kBlock];
        for (size_t i = 0; i < kBlock; i += 4) {
            const word* w = reinterpret_cast<const word*>(weights.weight) + (n + i) * words;
            for (size_t row = 0; row < count; ++row) {
                const word* at = rows + row * words;
                vec a = vec{}, b = a, c = a, d = a;
                for (size_t k = 0; k < words; k += kLanes) {
                    const vec each = load(at + k);
                    a = Format::add_product(each, load(w + k), a);
                    b = Format::add_product(each, load(w + words + k), b);
                    c = Format::add_product(each, load(w + 2 * words + k), c);
                    d = Format::add_product(each, load(w + 3 * words + k), d);
                }
                float* to = products[row] + i;
                to[0] = sum(a), to[1] = sum(b), to[2] = sum(c), to[3] = sum(d);
            }
        }
        const Epilogue<Format> epilogue(bias + n, relu);
        for (size_t row = 0; row < count; ++row)
            epilogue.store(load(products[row]), load(products[row] + kLanes), y + row * n_size + n);
    });
}

// As above with noise: means and deviations are multiplied separately, since few rows would reuse their sum.
template <class Unit>
void multiply_few_rows(const typename Unit::value* x, const NoisyWeights<Unit>& weights, const float* bias,
                       size_t count, bool relu, typename Unit::value* y) {
    using Format = typename Unit::Format;
    const size_t k_size = weights.k_size, n_size = weights.n_size;
    for_each_block(n_size, [&](size_t n) {
        alignas(64) float products[Unit::kFewRows][kBlock];
        for (size_t i = 0; i < kBlock; ++i) {
            const float *mean = weights.mean + (n + i) * k_size, *deviation = weights.deviation + (n + i) * k_size;
            for (size_t row = 0; row < count; ++row) {
                vec a = vec{}, b = a, c = a, d = a, first, second;
                for (size_t k = 0; k < k_size; k += kBlock) {
                    Format::load(x + row * k_size + k, first, second);
                    a = multiply_add(first, load(mean + k), a);
                    b = multiply_add(second, load(mean + k + kLanes), b);
                    first *= load(weights.noise_in + k);
                    second *= load(weights.noise_in + k + kLanes);
                    c = multiply_add(first, load(deviation + k), c);
                    d = multiply_add(second, load(deviation + k + kLanes), d);
                }
                products[row][i] = sum(a + b) + weights.noise_out[n + i] * sum(c + d);
            }
        }
        const Epilogue<Format> epilogue(bias + n, relu);
        for (size_t row = 0; row < count; ++row)
            epilogue.store(load(products[row]), load(products[row] + kLanes), y + row * n_size + n);
    });
}

// A larger minibatch is split into pieces of this many rows, so that their panels and the streamed weights share a
// core's cache.
constexpr size_t kManyRows = 64;
constexpr size_t kTransposedWords = 256;  // words of a row that a thread transposes at a time

// The rows of a minibatch in panels: the right operand, so that the product with the weights is yᵀ.
template <class Unit>
class RowPanels {
    using Format = typename Unit::Format;
    using value = typename Unit::value;

  public:
    RowPanels(const value* x, size_t count, size_t k_size)
        : words(k_size / Format::kPerWord), padded(round_up(count, kBlock)), x_(x), k_size_(k_size),
          whole_(count / kLanes * kLanes) {
        Workspace<Unit>& workspace = per_thread<Workspace<Unit>>();
        panels_ = workspace.panels.get(padded * words);
        last_ = workspace.rows.get((padded - whole_) * k_size);
        std::copy(x + whole_ * k_size, x + count * k_size, last_);
        std::fill_n(last_ + (count - whole_) * k_size, (padded - count) * k_size, value(0));
    }

    void pack() const {
        const size_t parts = (words + kTransposedWords - 1) / kTransposedWords;
        for_each_piece(padded / kLanes * parts, [&](size_t piece) {
            const size_t row = piece / parts * kLanes, k = piece % parts * kTransposedWords;
            const value* from = row < whole_ ? x_ + row * k_size_ : last_ + (row - whole_) * k_size_;
            pack_rows(from + k * Format::kPerWord, k_size_, std::min(kTransposedWords, words - k),
                      panels_ + row * words + k * kLanes);
        });
    }
    // Returns the block of rows from `row` on, starting at input `k`.
    InPanels from(size_t row, size_t k) const {
        const word* panel = panels_ + row * words + k / Format::kPerWord * kLanes;
        return {panel, panel + words * kLanes};
    }

    const size_t words, padded;

  private:
    const value* x_;
    size_t k_size_, whole_;
    word* panels_;
    value* last_;
};

// Computes the sums of a block of outputs, from `n` on, for all rows: sums[outputs, rows], in blocks of rows.
template <class Unit, class Weights>
void multiply_block(const RowPanels<Unit>& x, const Weights& weights, size_t count, size_t n,
                    const typename Weights::Lines::Offsets& offsets, float* sums) {
    constexpr size_t kPerWord = Unit::Format::kPerWord;
    for (size_t k = 0, end; k < weights.k_size; k = end) {
        end = std::min(k + weights.piece(weights.k_size), weights.k_size);
        const View<typename Unit::value> piece = weights.rows(n, k, end);
        const Rows rows{reinterpret_cast<const word*>(piece.at), piece.pitch / kPerWord, 1};
        const Reduction reduction{(end - k) / kPerWord, 1, 0, k > 0};
        const auto next = weights.lines(end < weights.k_size ? n : n + kBlock, end % weights.k_size, offsets);
        for (size_t row = 0; row < count; row += kBlock)
            Unit::products(rows, reduction, x.from(row, k), next, sums + row * kBlock, kBlock);
    }
}

// Stores the transpose of a block's sums through the epilogue.
template <class Format>
void store_transposed(const float* sums, const Epilogue<Format>& epilogue, size_t count, typename Format::value* y,
                      size_t pitch) {
    vec block[2][kLanes];
    for (size_t row = 0; row < count; row += kLanes) {
        const float* from = sums + row / kBlock * kBlock * kBlock + row % kBlock;
        transpose_words(from, kBlock, block[0]);
        transpose_words(from + kLanes * kBlock, kBlock, block[1]);
        for (size_t i = 0; i < std::min(kLanes, count - row); ++i)
            epilogue.store(block[0][i], block[1][i], y + (row + i) * pitch);
    }
}

template <class Unit, class Weights>
void forward(const typename Unit::value* x, const Weights& weights, const float* bias, size_t count, bool relu,
             typename Unit::value* y) {
    using Format = typename Unit::Format;
    for (; count > kManyRows; count -= kManyRows, x += kManyRows * weights.k_size, y += kManyRows * weights.n_size)
        forward<Unit>(x, weights, bias, kManyRows, relu, y);
    if (count <= Unit::kFewRows) return multiply_few_rows<Unit>(x, weights, bias, count, relu, y);
    const RowPanels<Unit> rows(x, count, weights.k_size);
    rows.pack();
    typename Weights::Lines::Offsets offsets;
    weights.line_offsets(kPieceWords * Format::kPerWord, offsets);
    for_each_block(weights.n_size, [&](size_t n) {
        const typename Unit::Scope scope(kLanes);
        float* sums = per_thread<Workspace<Unit>>().sums.get(rows.padded * kBlock);
        multiply_block<Unit>(rows, weights, count, n, offsets, sums);
        store_transposed<Format>(sums, Epilogue<Format>(bias + n, relu), count, y + n, weights.n_size);
    });
}

// Stores the first `rows` rows of sums [kBlock, kBlock].
template <class Format>
void store_rows(const float* sums, size_t rows, typename Format::value* to, size_t pitch) {
    for (size_t row = 0; row < rows; ++row)
        Format::store(to + row * pitch, load(sums + row * kBlock), load(sums + row * kBlock + kLanes));
}

// Packs up to kBand columns of weights, of `words` words each, into panels.
template <class Unit>
const word* pack_columns(View<typename Unit::value> columns, size_t words, size_t count) {
    using Format = typename Unit::Format;
    word* panels = per_thread<Workspace<Unit>>().band.get(words * kBand);
    for (size_t i = 0; i < words; ++i) {
        const auto* a = columns.at + i * Format::kPerWord * columns.pitch;
        const auto* b = a + (Format::kPerWord - 1) * columns.pitch;
        for (size_t k = 0; k < count; k += kBlock)
            Format::pack(a + k, b + k, panels + k * words + i * kLanes, words * kLanes);
    }
    return panels;
}

// Computes columns `begin` to `end` of the gradient of x. `gradient` has padding rows up to a multiple of kBlock.
template <class Unit, class Weights>
void compute_x_gradient(const typename Unit::value* gradient, const Weights& weights, size_t count, size_t begin,
                        size_t end, typename Unit::value* x_gradient) {
    using Format = typename Unit::Format;
    constexpr size_t kPerWord = Format::kPerWord;
    const size_t k_size = weights.k_size, n_size = weights.n_size, n_words = n_size / kPerWord;
    const size_t padded = round_up(count, kBlock);
    float* sums = per_thread<Workspace<Unit>>().sums.get(padded * kBand);
    typename Weights::Lines::Offsets offsets;
    weights.line_offsets(kBlock, offsets);
    for (size_t n = 0, last; n < n_size; n = last) {
        last = std::min(n + weights.piece(n_size), n_size);
        const View<typename Unit::value> piece = weights.columns(n, last, begin, end);
        const size_t words = (last - n) / kPerWord;
        const word* band = Unit::kTakesRows ? nullptr : pack_columns<Unit>(piece, words, end - begin);
        const Reduction reduction{words, 1, 0, n > 0};
        for (size_t k = begin; k < end; k += kBlock) {
            const auto next = weights.lines(last, k, offsets);
            for (size_t row = 0; row < count; row += kBlock) {
                const Rows rows{reinterpret_cast<const word*>(gradient + row * n_size + n), n_words, 1};
                float* to = sums + row * kBand + (k - begin) * kBlock;
                if constexpr (Unit::kTakesRows) {
                    Unit::products(rows, reduction, InPrefetchedRows{piece.at + k - begin, piece.pitch}, next, to,
                                   kBlock);
                } else {
                    const word* panel = band + (k - begin) * words;
                    Unit::products(rows, reduction, InPanels{panel, panel + words * kLanes}, next, to, kBlock);
                }
            }
        }
    }
    for (size_t k = begin; k < end; k += kBlock)
        for (size_t row = 0; row < count; row += kBlock)
            store_rows<Format>(sums + row * kBand + (k - begin) * kBlock, std::min(kBlock, count - row),
                               x_gradient + row * k_size + k, k_size);
}

// Computes the gradient of the weights of kBlock outputs, from `n` on, for all inputs.
template <class Unit, class Weights>
void compute_weight_gradient(const GradientFactors<Unit>& factors, const Weights& weights, size_t n,
                             float* weight_gradient) {
    const size_t k_size = weights.k_size, row_words = factors.row_words;
    for (size_t k = 0; k < k_size; k += kBlock) {
        const word* panel = factors.panels + k * row_words;
        float* to = weight_gradient + n * k_size + k;
        // Prefetched in software: these are more rows than a hardware prefetcher tracks.
        for (size_t i = 0; i < kBlock; ++i)
            for (size_t line = 0; line < kBlock; line += kLine) {
                prefetch_to_write(to + i * k_size + 2 * kBlock + line);
                weights.prefetch_gradient(n + i, k + 2 * kBlock + line);
            }
        Unit::products(factors.gradient_columns.from(n), {row_words}, InPanels{panel, panel + row_words * kLanes},
                       NoPrefetch{}, to, k_size);
        weights.store_deviation_gradient(to, n, k);
    }
}

template <class Unit, class Weights>
void backward(const typename Unit::value* x, const Weights& weights, const typename Unit::value* upstream,
              size_t count, float* weight_gradient, float* bias_gradient, typename Unit::value* x_gradient) {
    const size_t k_size = weights.k_size, n_size = weights.n_size;
    const GradientFactors<Unit> factors(x, upstream, count, k_size, n_size);
    sum_rows<typename Unit::Format>(factors.gradient, count, n_size, bias_gradient);
    for_each_band(k_size, [&](size_t begin, size_t end) {
        const typename Unit::Scope scope(kLanes);
        if (weight_gradient) factors.pack_x(begin, end);
        if (x_gradient) compute_x_gradient<Unit>(factors.gradient, weights, count, begin, end, x_gradient);
    });
    if (!weight_gradient) return;
    for_each_block(n_size, [&](size_t n) {
        const typename Unit::Scope scope(kLanes);
        compute_weight_gradient<Unit>(factors, weights, n, weight_gradient);
    });
}

}  // namespace

extern "C" void multiply(int unit, const void* x, const void* weight, const float* bias, std::int64_t batch,
                         std::int64_t inputs, std::int64_t outputs, int relu, void* y) {
    with_unit(unit, [&](auto chosen) {
        using value = typename decltype(chosen)::value;
        const PlainWeights<decltype(chosen)> weights{static_cast<const value*>(weight), size_t(inputs),
                                                     size_t(outputs)};
        forward<decltype(chosen)>(static_cast<const value*>(x), weights, bias, batch, relu, static_cast<value*>(y));
    });
}

extern "C" void multiply_noisy(int unit, const void* x, const float* mean, const float* deviation,
                               const float* noise_in, const float* noise_out, const float* bias,
                               const float* bias_deviation, std::int64_t batch, std::int64_t inputs,
                               std::int64_t outputs, int relu, void* y) {
    with_unit(unit, [&](auto chosen) {
        using value = typename decltype(chosen)::value;
        const NoisyWeights<decltype(chosen)> weights{mean,    deviation,      noise_in,       noise_out,
                                                     nullptr, size_t(inputs), size_t(outputs)};
        float* noisy = per_thread<Workspace<decltype(chosen)>>().bias.get(outputs);
        noisy_bias(bias, bias_deviation, noise_out, outputs, noisy);
        forward<decltype(chosen)>(static_cast<const value*>(x), weights, noisy, batch, relu, static_cast<value*>(y));
    });
}

extern "C" void multiply_backward(int unit, const void* x, const void* weight, const void* upstream,
                                  std::int64_t batch, std::int64_t inputs, std::int64_t outputs,
                                  float* weight_gradient, float* bias_gradient, void* x_gradient) {
    with_unit(unit, [&](auto chosen) {
        using value = typename decltype(chosen)::value;
        const PlainWeights<decltype(chosen)> weights{static_cast<const value*>(weight), size_t(inputs),
                                                     size_t(outputs)};
        backward<decltype(chosen)>(static_cast<const value*>(x), weights, static_cast<const value*>(upstream), batch,
                                   weight_gradient, bias_gradient, static_cast<value*>(x_gradient));
    });
}

extern "C" void multiply_noisy_backward(int unit, const void* x, const float* mean, const float* deviation,
                                        const float* noise_in, const float* noise_out, const void* upstream,
                                        std::int64_t batch, std::int64_t inputs, std::int64_t outputs,
                                        float* mean_gradient, float* deviation_gradient, float* bias_gradient,
                                        float* bias_deviation_gradient, void* x_gradient) {
    with_unit(unit, [&](auto chosen) {
        using value = typename decltype(chosen)::value;
        const NoisyWeights<decltype(chosen)> weights{
            mean, deviation, noise_in, noise_out, deviation_gradient, size_t(inputs), size_t(outputs)};
        backward<decltype(chosen)>(static_cast<const value*>(x), weights, static_cast<const value*>(upstream), batch,
                                   mean_gradient, bias_gradient, static_cast<value*>(x_gradient));
        for (std::int64_t n = 0; n < outputs; ++n) bias_deviation_gradient[n] = bias_gradient[n] * noise_out[n];
    });
}
