// The fully connected layers of a network, as the forward and backward passes read them.
#pragma once

#include <algorithm>

#include "calls.hpp"
#include "dispatch.hpp"

// A fully connected layer; filled in by Python.
struct Layer {
    const void* weight;  // the means if the layer is noisy
    const float* bias;
    const float *deviation, *bias_deviation, *noise_in, *noise_out;  // null without noise
    std::int64_t inputs, outputs;
};

namespace {

// Converts hidden units to fp32, in `wide` unless they already are.
template <class Format>
const float* to_fp32(const typename Format::value* units, size_t count, Scratch<float>& wide) {
    if constexpr (Format::kPerWord == 1) return units;
    float* to = wide.get(round_up(count, kBlock));
    for (size_t i = 0; i < count; i += kBlock) {
        vec first, second;
        Format::load(units + i, first, second);
        Fp32::store(to + i, first, second);
    }
    return to;
}

// Returns columns `begin` to `begin + width` of rows [count, pitch] contiguously, in `to` unless they are all.
const float* column_slice(const float* rows, size_t count, size_t pitch, size_t begin, size_t width,
                          Scratch<float>& to) {
    if (width == pitch) return rows;
    float* at = to.get(count * width);
    for (size_t row = 0; row < count; ++row) std::copy_n(rows + row * pitch + begin, width, at + row * width);
    return at;
}

}  // namespace
