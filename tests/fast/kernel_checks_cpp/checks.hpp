// What the checks of the kernels share: drawn numbers, exact results in double precision, the comparison.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

using std::int64_t;
using std::size_t;
using std::uint8_t;
using Numbers = std::vector<float>;
using Exact = std::vector<double>;

constexpr double kRounding =
    1e-5;  // of the largest exact number: what fp32 may lose in a sum of some thousand products

inline int failures = 0, comparisons = 0;

extern "C" int block();  // what sizes must be multiples of

// Numbers from N(0, scale²), in memory of just this size, so that a sanitizer finds what is read behind them.
inline Numbers drawn(size_t count, double scale = 1) {
    static std::mt19937 generator(0);
    std::normal_distribution<float> normal;
    Numbers numbers(count);
    for (float& number : numbers) number = float(scale) * normal(generator);
    return numbers;
}

inline std::vector<uint8_t> drawn_bytes(size_t count) {
    static std::mt19937 generator(1);
    std::vector<uint8_t> bytes(count);
    for (uint8_t& byte : bytes) byte = uint8_t(generator() % 256);
    return bytes;
}

// Fails unless every number is within `tolerance` times the largest exact number of its exact one.
template <class Found>
void compare(const std::string& name, const Found& found, const Exact& exact, double tolerance = kRounding) {
    double largest = 0, apart = 0;
    size_t worst = 0;
    for (size_t i = 0; i < std::min(found.size(), exact.size()); ++i) {
        largest = std::max(largest, std::fabs(exact[i]));
        const double distance = std::fabs(found[i] - exact[i]);
        if (!(distance <= apart)) apart = distance, worst = i;  // NaN is never near
    }
    ++comparisons;
    if (found.size() == exact.size() && apart <= tolerance * largest) return;
    ++failures;
    std::printf("%s: number %zu of %zu is %.9g, expected %.9g within %.3g\n", name.c_str(), worst, exact.size(),
                found.size() > worst ? double(found[worst]) : NAN, exact[worst], tolerance * largest);
}

// What a ReLU lets through of a gradient.
inline Exact let_through(Exact gradient, const Numbers& output) {
    for (size_t i = 0; i < gradient.size(); ++i) gradient[i] *= output[i] > 0;
    return gradient;
}

inline Exact rectified(Exact x) {
    for (double& number : x) number = std::max(number, 0.0);
    return x;
}

// A fully connected layer: weight `outputs` × `inputs`, of means and of deviations that count times their noise.
struct Dense {
    size_t inputs, outputs;
    bool noisy;
    Numbers weight = drawn(inputs * outputs, 0.1), deviation = drawn(inputs * outputs, 0.1);
    Numbers bias = drawn(outputs), bias_deviation = drawn(outputs);
    Numbers noise_in = drawn(inputs), noise_out = drawn(outputs);

    double noise(size_t n, size_t k) const { return double(noise_out[n]) * noise_in[k]; }
    double weight_at(size_t n, size_t k) const {
        return weight[n * inputs + k] + (noisy ? deviation[n * inputs + k] * noise(n, k) : 0);
    }
    // What it puts out for rows of inputs.
    Exact apply(const Exact& x) const {
        Exact y(x.size() / inputs * outputs);
        for (size_t at = 0; at < y.size(); ++at) {
            const size_t row = at / outputs, n = at % outputs;
            y[at] = bias[n] + (noisy ? double(bias_deviation[n]) * noise_out[n] : 0);
            for (size_t k = 0; k < inputs; ++k) y[at] += x[row * inputs + k] * weight_at(n, k);
        }
        return y;
    }
};

// The gradients of a fully connected layer.
struct OfDense {
    Exact x, weight, deviation, bias, bias_deviation;

    OfDense(const Dense& layer, const Exact& in, const Exact& upstream)
        : x(in.size()), weight(layer.weight.size()), deviation(weight.size()), bias(layer.outputs),
          bias_deviation(layer.outputs) {
        for (size_t at = 0; at < upstream.size(); ++at) {
            const size_t row = at / layer.outputs, n = at % layer.outputs;
            bias[n] += upstream[at];
            bias_deviation[n] += upstream[at] * layer.noise_out[n];
            for (size_t k = 0; k < layer.inputs; ++k) {
                x[row * layer.inputs + k] += upstream[at] * layer.weight_at(n, k);
                weight[n * layer.inputs + k] += upstream[at] * in[row * layer.inputs + k];
            }
        }
        for (size_t at = 0; at < weight.size(); ++at)
            deviation[at] = weight[at] * layer.noise(at / layer.inputs, at % layer.inputs);
    }
};

// A convolution of channels-last images by square kernels; the numbers are those that the kernels take, in this
// order.
struct Convolution {
    int64_t batch, height, width, channels, kernel_height, kernel_width, stride, above, below, left, right, filters;

    int64_t out_height() const { return (height + above + below - kernel_height) / stride + 1; }
    int64_t out_width() const { return (width + left + right - kernel_width) / stride + 1; }
    size_t in() const { return size_t(batch * height * width * channels); }
    size_t out() const { return size_t(batch * out_height() * out_width() * filters); }
    size_t weights() const { return size_t(filters * kernel_height * kernel_width * channels); }

    // Calls `add` with the places of each product's three numbers: output, input, weight.
    template <class Add>
    void for_each_product(Add add) const {
        size_t out = 0;
        for (int64_t image = 0; image < batch; ++image)
            for (int64_t y = 0; y < out_height(); ++y)
                for (int64_t x = 0; x < out_width(); ++x)
                    for (int64_t filter = 0; filter < filters; ++filter, ++out)
                        for (int64_t row = 0; row < kernel_height; ++row)
                            for (int64_t column = 0; column < kernel_width; ++column) {
                                const int64_t from_y = y * stride + row - above, from_x = x * stride + column - left;
                                if (from_y < 0 || from_y >= height || from_x < 0 || from_x >= width) continue;
                                const int64_t in = ((image * height + from_y) * width + from_x) * channels;
                                const int64_t weight =
                                    ((filter * kernel_height + row) * kernel_width + column) * channels;
                                for (int64_t c = 0; c < channels; ++c) add(out, size_t(in + c), size_t(weight + c));
                            }
    }
    Exact apply(const Numbers& x, const Numbers& weight, const Numbers& bias) const {
        Exact y(out());
        for (size_t at = 0; at < y.size(); ++at) y[at] = bias[at % size_t(filters)];
        for_each_product([&](size_t o, size_t i, size_t w) { y[o] += double(x[i]) * weight[w]; });
        return y;
    }
};

// The gradients of a convolution.
struct OfConvolution {
    Exact x, weight, bias;

    OfConvolution(const Convolution& layer, const Numbers& in, const Numbers& of, const Exact& upstream)
        : x(layer.in()), weight(layer.weights()), bias(size_t(layer.filters)) {
        for (size_t at = 0; at < upstream.size(); ++at) bias[at % bias.size()] += upstream[at];
        layer.for_each_product([&](size_t o, size_t i, size_t w) {
            x[i] += upstream[o] * of[w];
            weight[w] += upstream[o] * in[i];
        });
    }
};

// Images of one colour, every second black as the zeros around it, with smaller areas of others, channels last: most
// patches equal those next to them.
inline std::vector<uint8_t> drawn_areas(const Convolution& layer) {
    static std::mt19937 generator(2);
    const auto below = [&](int64_t end) {
        return int64_t(generator()) % end;
    };
    const auto size = layer.in() / size_t(layer.batch);
    std::vector<uint8_t> images(layer.in());
    for (int64_t image = 0; image < layer.batch; ++image) {
        std::fill_n(images.begin() + std::ptrdiff_t(size_t(image) * size), size, uint8_t(image % 2 * 80));
        for (int64_t area = 0; area < 4; ++area) {
            const int64_t top = below(layer.height), first = below(layer.width);
            const int64_t bottom = std::min(layer.height, top + 1 + below(12)),
                          last = std::min(layer.width, first + 1 + below(12));
            const auto channel = size_t(below(layer.channels)), colour = size_t(below(256));
            for (int64_t y = top; y < bottom; ++y)
                for (int64_t x = first; x < last; ++x)
                    images[size_t(((image * layer.height + y) * layer.width + x) * layer.channels) + channel] =
                        uint8_t(colour);
        }
    }
    return images;
}

// Numbers of each pixel in a row, as numbers of each channel in a row, or the reverse.
template <class Row>
Row transposed(const Row& from, size_t batch, size_t rows, size_t columns) {
    Row to(from.size());
    for (size_t i = 0; i < batch; ++i)
        for (size_t row = 0; row < rows; ++row)
            for (size_t column = 0; column < columns; ++column)
                to[(i * columns + column) * rows + row] = from[(i * rows + row) * columns + column];
    return to;
}

inline Exact exact(const Numbers& numbers) { return {numbers.begin(), numbers.end()}; }
