// Products of rows with a fully connected layer's weights, noisy or not, forward and backward.
//
// The weights, which are by far the most there is to read, are read once, where they lie. Noisy ones are made of their
// means and deviations in a core's own cache, piece by piece, when they are about to be read (weights.hpp).
// A multiple of kBlock: the inputs, and the outputs but of vectors in fp32, where they may be any number from kBlock on.
#include <algorithm>
#include <cstring>

#include "calls.hpp"
#include "weights.hpp"

namespace {

// Calls `run` with the first of kBlock outputs, shared among threads. The last kBlock may overlap those before them, whose
// thread then makes some again, as they were.
template <class Run>
void for_each_block(size_t outputs, const Run& run) {
    for_each_piece(outputs / kBlock, [&](size_t block) {
        run(block * kBlock);
        if (block + 1 == outputs / kBlock && outputs % kBlock) run(outputs - kBlock);
    });
}

// Few rows: each is multiplied with the weights' rows as they lie, four at a time.
template <class Unit>
void few(const typename Unit::value* x, const Plain<Unit>& weights, const float* bias, size_t count, bool relu,
         typename Unit::value* y) {
    using Format = typename Unit::Format;
    const size_t words = weights.k_size / Format::kPerWord, n_size = weights.n_size;
    const word* rows = reinterpret_cast<const word*>(x);
    for_each_block(n_size, [&](size_t n) {
        alignas(64) float products[Unit::kFew][kBlock];
        for (size_t i = 0; i < kBlock; i += 4) {
            const word* w = reinterpret_cast<const word*>(weights.weight) + (n + i) * words;
            for (size_t row = 0; row < count; ++row) {
                const word* at = rows + row * words;
                vec a = vec{}, b = a, c = a, d = a;
                for (size_t k = 0; k < words; k += kSide) {
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
        const Finish<Format> finish(bias + n, relu);
        for (size_t row = 0; row < count; ++row)
            finish.store(load(products[row]), load(products[row] + kSide), y + row * n_size + n);
    });
}

// The same under noise: means and deviations are multiplied apart, as there is nothing to keep for other rows.
template <class Unit>
void few(const typename Unit::value* x, const Noisy<Unit>& weights, const float* bias, size_t count, bool relu,
         typename Unit::value* y) {
    using Format = typename Unit::Format;
    const size_t k_size = weights.k_size, n_size = weights.n_size;
    for_each_block(n_size, [&](size_t n) {
        alignas(64) float products[Unit::kFew][kBlock];
        for (size_t i = 0; i < kBlock; ++i) {
            const float *mean = weights.mean + (n + i) * k_size, *deviation = weights.deviation + (n + i) * k_size;
            for (size_t row = 0; row < count; ++row) {
                vec a = vec{}, b = a, c = a, d = a, first, second;
                for (size_t k = 0; k < k_size; k += kBlock) {
                    Format::load(x + row * k_size + k, first, second);
                    a = multiply_add(first, load(mean + k), a);
                    b = multiply_add(second, load(mean + k + kSide), b);
                    first *= load(weights.noise_in + k);
                    second *= load(weights.noise_in + k + kSide);
                    c = multiply_add(first, load(deviation + k), c);
                    d = multiply_add(second, load(deviation + k + kSide), d);
                }
                products[row][i] = sum(a + b) + weights.noise_out[n + i] * sum(c + d);
            }
        }
        const Finish<Format> finish(bias + n, relu);
        for (size_t row = 0; row < count; ++row)
            finish.store(load(products[row]), load(products[row] + kSide), y + row * n_size + n);
    });
}

// Many rows are multiplied so many at a time: their panels, and the weights that pass, share a core's cache.
constexpr size_t kManyRows = 64;
constexpr size_t kTransposed = 256;  // words of a row that a thread transposes at a time

// The rows of a minibatch in panels: what comes out of a product with weights is transposed.
template <class Unit>
class RowPanels {
    using Format = typename Unit::Format;
    using value = typename Unit::value;

  public:
    RowPanels(const value* x, size_t count, size_t k_size)
        : words(k_size / Format::kPerWord), padded(round_up(count, kBlock)), x_(x), k_size_(k_size),
          whole_(count / kSide * kSide) {
        Memory<Unit>& memory = kept<Memory<Unit>>();
        panels_ = memory.panels.of(padded * words);
        last_ = memory.rows.of((padded - whole_) * k_size);
        std::copy(x + whole_ * k_size, x + count * k_size, last_);
        std::fill_n(last_ + (count - whole_) * k_size, (padded - count) * k_size, value(0));
    }

    void place() const {
        const size_t parts = (words + kTransposed - 1) / kTransposed;
        for_each_piece(padded / kSide * parts, [&](size_t piece) {
            const size_t row = piece / parts * kSide, k = piece % parts * kTransposed;
            const value* from = row < whole_ ? x_ + row * k_size_ : last_ + (row - whole_) * k_size_;
            panel_of_rows(from + k * Format::kPerWord, k_size_, std::min(kTransposed, words - k),
                          panels_ + row * words + k * kSide);
        });
    }
    // A block of rows from `row` on, from input `k` on.
    InPanels from(size_t row, size_t k) const {
        const word* panel = panels_ + row * words + k / Format::kPerWord * kSide;
        return {panel, panel + words * kSide};
    }

    const size_t words, padded;

  private:
    const value* x_;
    size_t k_size_, whole_;
    word* panels_;
    value* last_;
};

// The sums of a block of outputs, from `n` on, for all rows.
template <class Unit, class Weights>
void multiply_block(const RowPanels<Unit>& x, const Weights& weights, size_t count, size_t n,
                    const typename Weights::Next::Offsets& offsets, float* sums) {
    constexpr size_t kPerWord = Unit::Format::kPerWord;
    for (size_t k = 0, end; k < weights.k_size; k = end) {
        end = std::min(k + weights.piece(weights.k_size), weights.k_size);
        const View<typename Unit::value> piece = weights.rows(n, k, end);
        const Rows rows{reinterpret_cast<const word*>(piece.at), piece.pitch / kPerWord, 1};
        const Way way{(end - k) / kPerWord, 1, 0, k > 0};
        const auto next = weights.lines(end < weights.k_size ? n : n + kBlock, end % weights.k_size, offsets);
        for (size_t row = 0; row < count; row += kBlock)
            Unit::products(rows, way, x.from(row, k), next, sums + row * kBlock, kBlock);
    }
}

// Stores the transpose of a block's sums.
template <class Format>
void store_transposed(const float* sums, const Finish<Format>& finish, size_t count, typename Format::value* y,
                      size_t pitch) {
    vec block[2][kSide];
    for (size_t row = 0; row < count; row += kSide) {
        const float* from = sums + row / kBlock * kBlock * kBlock + row % kBlock;
        transpose_words(from, kBlock, block[0]);
        transpose_words(from + kSide * kBlock, kBlock, block[1]);
        for (size_t i = 0; i < std::min(kSide, count - row); ++i)
            finish.store(block[0][i], block[1][i], y + (row + i) * pitch);
    }
}

template <class Unit, class Weights>
void forward(const typename Unit::value* x, const Weights& weights, const float* bias, size_t count, bool relu,
             typename Unit::value* y) {
    using Format = typename Unit::Format;
    for (; count > kManyRows; count -= kManyRows, x += kManyRows * weights.k_size, y += kManyRows * weights.n_size)
        forward<Unit>(x, weights, bias, kManyRows, relu, y);
    if (count <= Unit::kFew) return few<Unit>(x, weights, bias, count, relu, y);
    const RowPanels<Unit> rows(x, count, weights.k_size);
    rows.place();
    typename Weights::Next::Offsets offsets;
    weights.find_lines(kWords * Format::kPerWord, offsets);
    for_each_block(weights.n_size, [&](size_t n) {
        const typename Unit::Scope scope(kSide);
        float* sums = kept<Memory<Unit>>().sums.of(rows.padded * kBlock);
        multiply_block<Unit>(rows, weights, count, n, offsets, sums);
        store_transposed<Format>(sums, Finish<Format>(bias + n, relu), count, y + n, weights.n_size);
    });
}

// The first `rows` rows of kBlock × kBlock sums.
template <class Format>
void store_rows(const float* sums, size_t rows, typename Format::value* to, size_t pitch) {
    for (size_t row = 0; row < rows; ++row)
        Format::store(to + row * pitch, load(sums + row * kBlock),
                      load(sums + row * kBlock + kSide));
}

// Columns of weights in panels, up to `kBand`: `words` words of each.
template <class Unit>
const word* panels_of_columns(View<typename Unit::value> columns, size_t words, size_t count) {
    using Format = typename Unit::Format;
    word* panels = kept<Memory<Unit>>().band.of(words * kBand);
    for (size_t i = 0; i < words; ++i) {
        const auto* a = columns.at + i * Format::kPerWord * columns.pitch;
        const auto* b = a + (Format::kPerWord - 1) * columns.pitch;
        for (size_t k = 0; k < count; k += kBlock)
            Format::place(a + k, b + k, panels + k * words + i * kSide, words * kSide);
    }
    return panels;
}

// The gradient of x in the columns from `begin` to `end`. `gradient` has rows behind the last, up to a multiple of kBlock.
template <class Unit, class Weights>
void input_gradient(const typename Unit::value* gradient, const Weights& weights, size_t count, size_t begin,
                    size_t end, typename Unit::value* of_x) {
    using Format = typename Unit::Format;
    constexpr size_t kPerWord = Format::kPerWord;
    const size_t k_size = weights.k_size, n_size = weights.n_size, n_words = n_size / kPerWord;
    const size_t padded = round_up(count, kBlock);
    float* sums = kept<Memory<Unit>>().sums.of(padded * kBand);
    typename Weights::Next::Offsets offsets;
    weights.find_lines(kBlock, offsets);
    for (size_t n = 0, last; n < n_size; n = last) {
        last = std::min(n + weights.piece(n_size), n_size);
        const View<typename Unit::value> piece = weights.columns(n, last, begin, end);
        const size_t words = (last - n) / kPerWord;
        const word* band = Unit::kTakesRows ? nullptr : panels_of_columns<Unit>(piece, words, end - begin);
        const Way way{words, 1, 0, n > 0};
        for (size_t k = begin; k < end; k += kBlock) {
            const auto next = weights.lines(last, k, offsets);
            for (size_t row = 0; row < count; row += kBlock) {
                const Rows rows{reinterpret_cast<const word*>(gradient + row * n_size + n), n_words, 1};
                float* to = sums + row * kBand + (k - begin) * kBlock;
                if constexpr (Unit::kTakesRows) {
                    Unit::products(rows, way, InPrefetchedRows{piece.at + k - begin, piece.pitch}, next, to, kBlock);
                } else {
                    const word* panel = band + (k - begin) * words;
                    Unit::products(rows, way, InPanels{panel, panel + words * kSide}, next, to, kBlock);
                }
            }
        }
    }
    for (size_t k = begin; k < end; k += kBlock)
        for (size_t row = 0; row < count; row += kBlock)
            store_rows<Format>(sums + row * kBand + (k - begin) * kBlock, std::min(kBlock, count - row),
                               of_x + row * k_size + k, k_size);
}

// The gradient of kBlock outputs' weights from `n` on: of all their inputs.
template <class Unit, class Weights>
void weight_gradient(const Sides<Unit>& sides, const Weights& weights, size_t n, float* of_weight) {
    const size_t k_size = weights.k_size, row_words = sides.row_words;
    for (size_t k = 0; k < k_size; k += kBlock) {
        const word* panel = sides.panels + k * row_words;
        float* to = of_weight + n * k_size + k;
        // so many rows at a time are more than a processor foresees
        for (size_t i = 0; i < kBlock; ++i)
            for (size_t line = 0; line < kBlock; line += kLine) {
                prefetch_to_write(to + i * k_size + 2 * kBlock + line);
                weights.prefetch_gradient(n + i, k + 2 * kBlock + line);
            }
        Unit::products(sides.of_outputs.from(n), {row_words}, InPanels{panel, panel + row_words * kSide}, NoLines{}, to,
                       k_size);
        weights.deviation_gradient(to, n, k);
    }
}

template <class Unit, class Weights>
void backward(const typename Unit::value* x, const Weights& weights, const typename Unit::value* upstream,
              size_t count, float* of_weight, float* of_bias, typename Unit::value* of_x) {
    const size_t k_size = weights.k_size, n_size = weights.n_size;
    const Sides<Unit> sides(x, upstream, count, k_size, n_size);
    sum_rows<typename Unit::Format>(sides.gradient, count, n_size, of_bias);
    for_each_band(k_size, [&](size_t begin, size_t end) {
        const typename Unit::Scope scope(kSide);
        if (of_weight) sides.place(begin, end);
        if (of_x) input_gradient<Unit>(sides.gradient, weights, count, begin, end, of_x);
    });
    if (!of_weight) return;
    for_each_block(n_size, [&](size_t n) {
        const typename Unit::Scope scope(kSide);
        weight_gradient<Unit>(sides, weights, n, of_weight);
    });
}

}  // namespace

extern "C" void multiply(int unit, const void* x, const void* weight, const float* bias, std::int64_t batch,
                         std::int64_t inputs, std::int64_t outputs, int relu, void* y) {
    with_unit(unit, [&](auto chosen) {
        using value = typename decltype(chosen)::value;
        const Plain<decltype(chosen)> weights{static_cast<const value*>(weight), size_t(inputs), size_t(outputs)};
        forward<decltype(chosen)>(static_cast<const value*>(x), weights, bias, batch, relu, static_cast<value*>(y));
    });
}

extern "C" void multiply_noisy(int unit, const void* x, const float* mean, const float* deviation,
                               const float* noise_in, const float* noise_out, const float* bias,
                               const float* bias_deviation, std::int64_t batch, std::int64_t inputs,
                               std::int64_t outputs, int relu, void* y) {
    with_unit(unit, [&](auto chosen) {
        using value = typename decltype(chosen)::value;
        const Noisy<decltype(chosen)> weights{mean,    deviation,      noise_in,       noise_out,
                                              nullptr, size_t(inputs), size_t(outputs)};
        float* noisy = kept<Memory<decltype(chosen)>>().bias.of(outputs);
        noisy_bias(bias, bias_deviation, noise_out, outputs, noisy);
        forward<decltype(chosen)>(static_cast<const value*>(x), weights, noisy, batch, relu, static_cast<value*>(y));
    });
}

extern "C" void multiply_backward(int unit, const void* x, const void* weight, const void* upstream,
                                  std::int64_t batch, std::int64_t inputs, std::int64_t outputs, float* of_weight,
                                  float* of_bias, void* of_x) {
    with_unit(unit, [&](auto chosen) {
        using value = typename decltype(chosen)::value;
        const Plain<decltype(chosen)> weights{static_cast<const value*>(weight), size_t(inputs), size_t(outputs)};
        backward<decltype(chosen)>(static_cast<const value*>(x), weights, static_cast<const value*>(upstream), batch,
                                   of_weight, of_bias, static_cast<value*>(of_x));
    });
}

extern "C" void multiply_noisy_backward(int unit, const void* x, const float* mean, const float* deviation,
                                        const float* noise_in, const float* noise_out, const void* upstream,
                                        std::int64_t batch, std::int64_t inputs, std::int64_t outputs, float* of_mean,
                                        float* of_deviation, float* of_bias, float* of_bias_deviation, void* of_x) {
    with_unit(unit, [&](auto chosen) {
        using value = typename decltype(chosen)::value;
        const Noisy<decltype(chosen)> weights{mean,         deviation,      noise_in,       noise_out,
                                              of_deviation, size_t(inputs), size_t(outputs)};
        backward<decltype(chosen)>(static_cast<const value*>(x), weights, static_cast<const value*>(upstream), batch,
                                   of_mean, of_bias, static_cast<value*>(of_x));
        for (std::int64_t n = 0; n < outputs; ++n) of_bias_deviation[n] = of_bias[n] * noise_out[n];
    });
}
