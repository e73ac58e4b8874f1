// The forward pass of a whole network in one call. Used by actors for one image at a time, where the host's overhead
// between layers would take as long as the layers.
#include <algorithm>
#include <cmath>

#include "layers.hpp"

namespace {

struct Workspace {
    Scratch<char> encoded, units;
    Scratch<float> wide, slices, value;
};

inline float dot(const float* x, const float* weight, const float* noise, size_t count) {
    vec products{};
    for (size_t k = 0; k < count; k += kLanes) {
        vec each = load(x + k);
        if (noise) each *= load(noise + k);
        products = multiply_add(each, load(weight + k), products);
    }
    return sum(products);
}

// Applies a layer with fewer outputs than a block.
void multiply_narrow(const Layer& layer, const float* x, size_t rows, float* y) {
    const auto* weight = static_cast<const float*>(layer.weight);
    for (size_t row = 0; row < rows; ++row, x += layer.inputs)
        for (std::int64_t n = 0; n < layer.outputs; ++n) {
            float sum = dot(x, weight + n * layer.inputs, nullptr, layer.inputs) + layer.bias[n];
            if (layer.deviation)
                sum +=
                    layer.noise_out[n] * (dot(x, layer.deviation + n * layer.inputs, layer.noise_in, layer.inputs) +
                                          layer.bias_deviation[n]);
            *y++ = sum;
        }
}

void apply_layer(const Layer& layer, int unit, const void* x, size_t rows, bool relu, void* y) {
    if (layer.deviation)
        multiply_noisy(unit, x, static_cast<const float*>(layer.weight), layer.deviation, layer.noise_in,
                       layer.noise_out, layer.bias, layer.bias_deviation, rows, layer.inputs, layer.outputs, relu, y);
    else
        multiply(unit, x, layer.weight, layer.bias, rows, layer.inputs, layer.outputs, relu, y);
}

// Applies a layer of the head in fp32.
void apply_head(const Layer& layer, const float* units, size_t rows, float* y) {
    if (layer.outputs < std::int64_t(kBlock))
        multiply_narrow(layer, units, rows, y);
    else
        apply_layer(layer, kVectorsFp32, units, rows, false, y);
}

// Combines the streams of a dueling head: adds the state value minus the mean advantage to each advantage. `outputs`
// is [rows, actions, numbers], `value` [rows, numbers].
void add_value(const float* value, size_t rows, size_t actions, size_t numbers, float* outputs) {
    for (size_t row = 0; row < rows; ++row, value += numbers, outputs += actions * numbers)
        for (size_t z = 0; z < numbers; ++z) {
            float sum = 0;
            for (size_t action = 0; action < actions; ++action) sum += outputs[action * numbers + z];
            const float shift = value[z] - sum / float(actions);
            for (size_t action = 0; action < actions; ++action) outputs[action * numbers + z] += shift;
        }
}

// Scales draws from N(0, 1) to factorised noise, sgn(x) √|x|; the variance of a product of two is of order 1 (2/π).
void scale_noise(float* x, size_t count) {
    for (size_t i = 0; i < count; ++i) x[i] = std::copysign(std::sqrt(std::fabs(x[i])), x[i]);
}

}  // namespace

// Computes the outputs [rows, actions × numbers] of a network: a stack of convolutions, which reads images as in
// `encode`, a hidden layer and a head. `layers` are the hidden layer, the action layer and the value layer of a
// dueling head, whose weight is null if there is none. `noise` has `noise_count` draws from N(0, 1), which are scaled
// in place to the layers' noise. `kept_outputs`, unless null, receives what `backward` reads: the output of each
// convolution, the last one in planes, then the hidden units.
extern "C" void forward(int unit, const void* pixels, int are_fp32, int in_planes, const std::int64_t* shapes,
                        std::int64_t convolutions, const void* const* weights, const float* const* biases,
                        const Layer* layers, float* noise, std::int64_t noise_count, std::int64_t numbers,
                        void* const* kept_outputs, float* outputs) {
    const Layer &hidden = layers[0], &actions = layers[1], &value_layer = layers[2];
    const size_t rows = shapes[0], pitch = hidden.outputs;
    Workspace& workspace = per_thread<Workspace>();
    scale_noise(noise, noise_count);
    with_unit(unit, [&](auto chosen) {
        using Format = typename decltype(chosen)::Format;
        using value = typename Format::value;
        void* encoded = kept_outputs ? kept_outputs[convolutions - 1]
                                     : workspace.encoded.get(rows * hidden.inputs * sizeof(value));
        auto* units =
            static_cast<value*>(kept_outputs ? kept_outputs[convolutions]
                                             : workspace.units.get(round_up(rows * pitch, kBlock) * sizeof(value)));
        encode(unit, pixels, are_fp32, in_planes, shapes, convolutions, weights, biases, kept_outputs, encoded);
        apply_layer(hidden, unit, encoded, rows, true, units);
        const float* units_fp32 = to_fp32<Format>(units, rows * pitch, workspace.wide);
        apply_head(actions,
                   column_slice(units_fp32, rows, pitch, pitch - actions.inputs, actions.inputs, workspace.slices),
                   rows, outputs);
        if (!value_layer.weight) return;
        float* state_value = workspace.value.get(rows * numbers);
        apply_head(value_layer, column_slice(units_fp32, rows, pitch, 0, value_layer.inputs, workspace.slices), rows,
                   state_value);
        add_value(state_value, rows, actions.outputs / numbers, numbers, outputs);
    });
}
