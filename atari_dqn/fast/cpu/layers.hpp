// The arguments of the passes through a network's fully connected layers, forward and backward.
#pragma once

#include <algorithm>

#include "calls.hpp"
#include "dispatch.hpp"

// A fully connected layer; as Python fills it in.
struct Layer {
    const void* weight;  // its means, under noise
    const float* bias;
    const float *deviation, *bias_deviation, *noise_in, *noise_out;  // null without noise
    std::int64_t inputs, outputs;
};

namespace {

// Rows of hidden units, as fp32.
template <class Format>
const float* widened(const typename Format::value* units, size_t count, Scratch<float>& wide) {
    if constexpr (Format::kPerWord == 1) return units;
    float* to = wide.of(round_up(count, kBlock));
    for (size_t i = 0; i < count; i += kBlock) {
        vec first, second;
        Format::load(units + i, first, second);
        Fp32::store(to + i, first, second);
    }
    return to;
}

// Some columns of rows, side by side.
const float* part(const float* rows, size_t count, size_t pitch, size_t begin, size_t width, Scratch<float>& to) {
    if (width == pitch) return rows;
    float* at = to.of(count * width);
    for (size_t row = 0; row < count; ++row) std::copy_n(rows + row * pitch + begin, width, at + row * width);
    return at;
}

}  // namespace
