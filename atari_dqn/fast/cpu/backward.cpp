// The gradients of a network's whole forward pass (forward.cpp), in one call.
#include <algorithm>

#include "layers.hpp"

// Where the gradients of a layer's weights and biases go, and under noise those of their deviations; as Python fills it in.
struct OfLayer {
    float *weight, *bias, *deviation, *bias_deviation;
};

namespace {

struct Memory {
    Scratch<char> of_encoded;
    Scratch<float> wide, parts, of_units, of_part, of_actions, of_state;
};

// The gradients of a head's layer of too few outputs for products in blocks.
void narrow_backward(const Layer& layer, const float* x, const float* upstream, size_t rows, const OfLayer& to,
                     float* of_x) {
    const size_t inputs = layer.inputs, outputs = layer.outputs;
    const auto* weight = static_cast<const float*>(layer.weight);
    const bool noisy = layer.deviation;
    const auto noise = [&](size_t n, size_t k) {
        return load(layer.noise_in + k) * splat(layer.noise_out[n]);
    };
    for (size_t n = 0; n < outputs; ++n) {
        float of_bias = 0;
        for (size_t row = 0; row < rows; ++row) of_bias += upstream[row * outputs + n];
        to.bias[n] = of_bias;
        if (noisy) to.bias_deviation[n] = of_bias * layer.noise_out[n];
        for (size_t k = 0; k < inputs; k += kSide) {
            vec sum = vec{};
            for (size_t row = 0; row < rows; ++row)
                sum = multiply_add(splat(upstream[row * outputs + n]), load(x + row * inputs + k),
                                      sum);
            store(to.weight + n * inputs + k, sum);
            if (noisy) store(to.deviation + n * inputs + k, sum * noise(n, k));
        }
    }
    for (size_t k = 0; k < inputs; k += kSide) {
        vec column[kBlock];  // of the weights
        for (size_t n = 0; n < outputs; ++n) {
            column[n] = load(weight + n * inputs + k);
            if (noisy) column[n] = multiply_add(noise(n, k), load(layer.deviation + n * inputs + k), column[n]);
        }
        for (size_t row = 0; row < rows; ++row) {
            vec sum = vec{};
            for (size_t n = 0; n < outputs; ++n)
                sum = multiply_add(splat(upstream[row * outputs + n]), column[n], sum);
            store(of_x + row * inputs + k, sum);
        }
    }
}

// Those of any layer; its weights' are left out where they have no place to go.
void apply_backward(const Layer& layer, int unit, const void* x, const void* upstream, size_t rows, const OfLayer& to,
                    void* of_x) {
    if (layer.deviation)
        multiply_noisy_backward(unit, x, static_cast<const float*>(layer.weight), layer.deviation, layer.noise_in,
                                layer.noise_out, upstream, rows, layer.inputs, layer.outputs, to.weight, to.deviation,
                                to.bias, to.bias_deviation, of_x);
    else
        multiply_backward(unit, x, layer.weight, upstream, rows, layer.inputs, layer.outputs, to.weight, to.bias, of_x);
}

// Those of a head's layer, which reads the units from `begin` on; their gradient is added to what other layers give.
void rate_backward(const Layer& layer, const float* units, size_t rows, size_t pitch, size_t begin,
                   const float* upstream, const OfLayer& to, Memory& memory, float* of_units) {
    const size_t inputs = layer.inputs;
    const float* x = part(units, rows, pitch, begin, inputs, memory.parts);
    float* of_x = memory.of_part.of(rows * inputs);
    if (layer.outputs < std::int64_t(kBlock))
        narrow_backward(layer, x, upstream, rows, to, of_x);
    else
        apply_backward(layer, kVectorsFp32, x, upstream, rows, to, of_x);
    for (size_t row = 0; row < rows; ++row)
        for (size_t k = 0; k < inputs; ++k) of_units[row * pitch + begin + k] += of_x[row * inputs + k];
}

// What `add_value` does in the forward pass, backward: the value is of all actions, each advantage less their mean.
void split_value(const float* upstream, size_t rows, size_t actions, size_t numbers, float* of_actions, float* of_state) {
    for (size_t row = 0; row < rows; ++row, upstream += actions * numbers, of_actions += actions * numbers)
        for (size_t z = 0; z < numbers; ++z) {
            float sum = 0;
            for (size_t action = 0; action < actions; ++action) sum += upstream[action * numbers + z];
            *of_state++ = sum;
            const float mean = sum / float(actions);
            for (size_t action = 0; action < actions; ++action)
                of_actions[action * numbers + z] = upstream[action * numbers + z] - mean;
        }
}

// The gradient of hidden units in their own format, where their ReLU let them through.
template <class Format>
void narrowed(const typename Format::value* units, const float* of_units, size_t count, typename Format::value* to) {
    if constexpr (Format::kPerWord == 1) {
        keep<Format>(units, of_units, count, to);
    } else {
        for (size_t i = 0; i < count; i += kBlock)
            Format::store(to + i, load(of_units + i), load(of_units + i + kSide));
        keep<Format>(units, to, count, to);
    }
}

}  // namespace

// The gradients of `forward`, given what it kept and the gradient of what it put out. Of the hidden layer's weights
// nothing is written if `of_layers` has no place for it; `of_hidden` and the last convolution's output are then the two sides of that product.
extern "C" void backward(int unit, const void* pixels, int are_fp32, int in_planes, const std::int64_t* shapes,
                         std::int64_t convolutions, const void* const* weights, const Layer* layers,
                         std::int64_t numbers, const void* const* kept_outputs, const float* upstream,
                         float* const* of_weights, float* const* of_biases, const OfLayer* of_layers, void* of_hidden) {
    const Layer &hidden = layers[0], &actions = layers[1], &state = layers[2];
    const size_t rows = shapes[0], pitch = hidden.outputs;
    Memory& memory = kept<Memory>();
    with_unit(unit, [&](auto chosen) {
        using Format = typename decltype(chosen)::Format;
        using value = typename Format::value;
        const void* encoded = kept_outputs[convolutions - 1];
        const auto* units = static_cast<const value*>(kept_outputs[convolutions]);
        const float* all = widened<Format>(units, rows * pitch, memory.wide);
        float* of_units = memory.of_units.of(rows * pitch);
        std::fill_n(of_units, rows * pitch, 0.0f);
        if (state.weight) {
            float *of_actions = memory.of_actions.of(rows * actions.outputs), *of_state = memory.of_state.of(rows * numbers);
            split_value(upstream, rows, actions.outputs / numbers, numbers, of_actions, of_state);
            rate_backward(state, all, rows, pitch, 0, of_state, of_layers[2], memory, of_units);
            upstream = of_actions;
        }
        rate_backward(actions, all, rows, pitch, pitch - actions.inputs, upstream, of_layers[1], memory, of_units);
        narrowed<Format>(units, of_units, rows * pitch, static_cast<value*>(of_hidden));
        void* of_encoded = memory.of_encoded.of(rows * hidden.inputs * sizeof(value));
        apply_backward(hidden, unit, encoded, of_hidden, rows, of_layers[0], of_encoded);
        encode_backward(unit, pixels, are_fp32, in_planes, shapes, convolutions, weights, kept_outputs, encoded, of_encoded,
                        of_weights, of_biases);
    });
}
