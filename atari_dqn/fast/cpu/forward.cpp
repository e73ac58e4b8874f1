// A network's whole forward pass, in one call: what acts asks for one image at a time, of which the host's own work between
// layers would take as long as the layers.
#include <algorithm>
#include <cmath>

#include "layers.hpp"

namespace {

struct Memory {
    Scratch<char> encoded, units;
    Scratch<float> wide, parts, value;
};

inline float dot(const float* x, const float* weight, const float* noise, size_t count) {
    vec products{};
    for (size_t k = 0; k < count; k += kSide) {
        vec each = load(x + k);
        if (noise) each *= load(noise + k);
        products = multiply_add(each, load(weight + k), products);
    }
    return sum(products);
}

// A layer of too few outputs for products in blocks.
void multiply_narrow(const Layer& layer, const float* x, size_t rows, float* y) {
    const auto* weight = static_cast<const float*>(layer.weight);
    for (size_t row = 0; row < rows; ++row, x += layer.inputs)
        for (std::int64_t n = 0; n < layer.outputs; ++n) {
            float sum = dot(x, weight + n * layer.inputs, nullptr, layer.inputs) + layer.bias[n];
            if (layer.deviation)
                sum += layer.noise_out[n] * (dot(x, layer.deviation + n * layer.inputs, layer.noise_in, layer.inputs) +
                                             layer.bias_deviation[n]);
            *y++ = sum;
        }
}

void apply(const Layer& layer, int unit, const void* x, size_t rows, bool relu, void* y) {
    if (layer.deviation)
        multiply_noisy(unit, x, static_cast<const float*>(layer.weight), layer.deviation, layer.noise_in,
                       layer.noise_out, layer.bias, layer.bias_deviation, rows, layer.inputs, layer.outputs, relu, y);
    else
        multiply(unit, x, layer.weight, layer.bias, rows, layer.inputs, layer.outputs, relu, y);
}

// A head's layer, in fp32.
void rate(const Layer& layer, const float* units, size_t rows, float* y) {
    if (layer.outputs < std::int64_t(kBlock))
        multiply_narrow(layer, units, rows, y);
    else
        apply(layer, kVectorsFp32, units, rows, false, y);
}

// Adds to the advantages of every action, of `numbers` numbers each, the state's value less their mean.
void add_value(const float* value, size_t rows, size_t actions, size_t numbers, float* outputs) {
    for (size_t row = 0; row < rows; ++row, value += numbers, outputs += actions * numbers)
        for (size_t z = 0; z < numbers; ++z) {
            float sum = 0;
            for (size_t action = 0; action < actions; ++action) sum += outputs[action * numbers + z];
            const float added = value[z] - sum / float(actions);
            for (size_t action = 0; action < actions; ++action) outputs[action * numbers + z] += added;
        }
}

// Makes of numbers from N(0, 1) what a product of two has a variance of about 1: signed roots.
void to_noise(float* x, size_t count) {
    for (size_t i = 0; i < count; ++i) x[i] = std::copysign(std::sqrt(std::fabs(x[i])), x[i]);
}

}  // namespace

// What a stack of convolutions, a hidden layer and a head put out, of images as `encode` reads them. `layers` are the
// hidden one, the head's that rates actions and the one that rates the state, whose weight is null where there is none. Of
// `numbers` for each action. Of `draws` from N(0, 1) the layers' noise is made, where they lie. `kept_outputs`, unless
// null, are filled with what `backward` reads: what each convolution puts out, the last channel by channel, then the
// hidden units.
extern "C" void forward(int unit, const void* pixels, int are_fp32, int in_planes, const std::int64_t* shapes,
                        std::int64_t convolutions, const void* const* weights, const float* const* biases,
                        const Layer* layers, float* noise, std::int64_t draws, std::int64_t numbers,
                        void* const* kept_outputs, float* outputs) {
    const Layer &hidden = layers[0], &actions = layers[1], &state = layers[2];
    const size_t rows = shapes[0], pitch = hidden.outputs;
    Memory& memory = kept<Memory>();
    to_noise(noise, draws);
    with_unit(unit, [&](auto chosen) {
        using Format = typename decltype(chosen)::Format;
        using value = typename Format::value;
        void* encoded = kept_outputs ? kept_outputs[convolutions - 1] : memory.encoded.of(rows * hidden.inputs * sizeof(value));
        auto* units = static_cast<value*>(
            kept_outputs ? kept_outputs[convolutions]
                         : memory.units.of(round_up(rows * pitch, kBlock) * sizeof(value)));
        encode(unit, pixels, are_fp32, in_planes, shapes, convolutions, weights, biases, kept_outputs, encoded);
        apply(hidden, unit, encoded, rows, true, units);
        const float* all = widened<Format>(units, rows * pitch, memory.wide);
        rate(actions, part(all, rows, pitch, pitch - actions.inputs, actions.inputs, memory.parts), rows, outputs);
        if (!state.weight) return;
        float* worth = memory.value.of(rows * numbers);
        rate(state, part(all, rows, pitch, 0, state.inputs, memory.parts), rows, worth);
        add_value(worth, rows, actions.outputs / numbers, numbers, outputs);
    });
}
