// The backward pass of a whole network in one call: the gradients of `forward` (forward.cpp).
#include <algorithm>

#include "layers.hpp"

// Destinations of the gradients of a layer's weights and biases and, for a noisy layer, of their deviations. Filled
// in by Python.
struct LayerGradients {
    float *weight, *bias, *deviation, *bias_deviation;
};

namespace {

struct Workspace {
    Scratch<char> encoded_gradient;
    Scratch<float> wide, slices, units_gradient, slice_gradient, action_gradient, value_gradient;
};

// Computes the gradients of a layer of the head with fewer outputs than a block.
void multiply_narrow_backward(const Layer& layer, const float* x, const float* upstream, size_t rows,
                              const LayerGradients& gradients, float* x_gradient) {
    const size_t inputs = layer.inputs, outputs = layer.outputs;
    const auto* weight = static_cast<const float*>(layer.weight);
    const bool noisy = layer.deviation;
    const auto noise = [&](size_t n, size_t k) {
        return load(layer.noise_in + k) * splat(layer.noise_out[n]);
    };
    for (size_t n = 0; n < outputs; ++n) {
        float bias_gradient = 0;
        for (size_t row = 0; row < rows; ++row) bias_gradient += upstream[row * outputs + n];
        gradients.bias[n] = bias_gradient;
        if (noisy) gradients.bias_deviation[n] = bias_gradient * layer.noise_out[n];
        for (size_t k = 0; k < inputs; k += kLanes) {
            vec sum = vec{};
            for (size_t row = 0; row < rows; ++row)
                sum = multiply_add(splat(upstream[row * outputs + n]), load(x + row * inputs + k), sum);
            store(gradients.weight + n * inputs + k, sum);
            if (noisy) store(gradients.deviation + n * inputs + k, sum * noise(n, k));
        }
    }
    for (size_t k = 0; k < inputs; k += kLanes) {
        vec column[kBlock];  // of the weights, for all outputs
        for (size_t n = 0; n < outputs; ++n) {
            column[n] = load(weight + n * inputs + k);
            if (noisy) column[n] = multiply_add(noise(n, k), load(layer.deviation + n * inputs + k), column[n]);
        }
        for (size_t row = 0; row < rows; ++row) {
            vec sum = vec{};
            for (size_t n = 0; n < outputs; ++n)
                sum = multiply_add(splat(upstream[row * outputs + n]), column[n], sum);
            store(x_gradient + row * inputs + k, sum);
        }
    }
}

// Computes the gradients of any layer; those of the weights are skipped if they have no destination.
void apply_layer_backward(const Layer& layer, int unit, const void* x, const void* upstream, size_t rows,
                          const LayerGradients& gradients, void* x_gradient) {
    if (layer.deviation)
        multiply_noisy_backward(unit, x, static_cast<const float*>(layer.weight), layer.deviation, layer.noise_in,
                                layer.noise_out, upstream, rows, layer.inputs, layer.outputs, gradients.weight,
                                gradients.deviation, gradients.bias, gradients.bias_deviation, x_gradient);
    else
        multiply_backward(unit, x, layer.weight, upstream, rows, layer.inputs, layer.outputs, gradients.weight,
                          gradients.bias, x_gradient);
}

// Computes the gradients of a layer of the head that reads `layer.inputs` hidden units from `begin` on, and adds the
// gradient of these units to that of the other layers.
void apply_head_backward(const Layer& layer, const float* units, size_t rows, size_t pitch, size_t begin,
                         const float* upstream, const LayerGradients& gradients, Workspace& workspace,
                         float* units_gradient) {
    const size_t inputs = layer.inputs;
    const float* x = column_slice(units, rows, pitch, begin, inputs, workspace.slices);
    float* x_gradient = workspace.slice_gradient.get(rows * inputs);
    if (layer.outputs < std::int64_t(kBlock))
        multiply_narrow_backward(layer, x, upstream, rows, gradients, x_gradient);
    else
        apply_layer_backward(layer, kVectorsFp32, x, upstream, rows, gradients, x_gradient);
    for (size_t row = 0; row < rows; ++row)
        for (size_t k = 0; k < inputs; ++k) units_gradient[row * pitch + begin + k] += x_gradient[row * inputs + k];
}

// The backward pass of `add_value`: the value's gradient is the sum of the actions', each advantage's is its action's
// minus their mean.
void add_value_backward(const float* upstream, size_t rows, size_t actions, size_t numbers, float* action_gradient,
                        float* value_gradient) {
    for (size_t row = 0; row < rows; ++row, upstream += actions * numbers, action_gradient += actions * numbers)
        for (size_t z = 0; z < numbers; ++z) {
            float sum = 0;
            for (size_t action = 0; action < actions; ++action) sum += upstream[action * numbers + z];
            *value_gradient++ = sum;
            const float mean = sum / float(actions);
            for (size_t action = 0; action < actions; ++action)
                action_gradient[action * numbers + z] = upstream[action * numbers + z] - mean;
        }
}

// Applies the backward pass of the hidden layer's ReLU and converts the gradient to the format of the units.
template <class Format>
void hidden_relu_backward(const typename Format::value* units, const float* units_gradient, size_t count,
                          typename Format::value* to) {
    if constexpr (Format::kPerWord == 1) {
        relu_backward<Format>(units, units_gradient, count, to);
    } else {
        for (size_t i = 0; i < count; i += kBlock)
            Format::store(to + i, load(units_gradient + i), load(units_gradient + i + kLanes));
        relu_backward<Format>(units, to, count, to);
    }
}

}  // namespace

// Computes the gradients of `forward` from the outputs it kept and the upstream gradient [rows, actions × numbers].
// The gradient of the hidden layer's weights is skipped if `layer_gradients` has no destination for it; its two
// factors are then `hidden_gradient` and the last convolution's output.
extern "C" void backward(int unit, const void* pixels, int are_fp32, int in_planes, const std::int64_t* shapes,
                         std::int64_t convolutions, const void* const* weights, const Layer* layers,
                         std::int64_t numbers, const void* const* kept_outputs, const float* upstream,
                         float* const* weight_gradients, float* const* bias_gradients,
                         const LayerGradients* layer_gradients, void* hidden_gradient) {
    const Layer &hidden = layers[0], &actions = layers[1], &value_layer = layers[2];
    const size_t rows = shapes[0], pitch = hidden.outputs;
    Workspace& workspace = per_thread<Workspace>();
    with_unit(unit, [&](auto chosen) {
        using Format = typename decltype(chosen)::Format;
        using value = typename Format::value;
        const void* encoded = kept_outputs[convolutions - 1];
        const auto* units = static_cast<const value*>(kept_outputs[convolutions]);
        const float* units_fp32 = to_fp32<Format>(units, rows * pitch, workspace.wide);
        float* units_gradient = workspace.units_gradient.get(rows * pitch);
        std::fill_n(units_gradient, rows * pitch, 0.0f);
        if (value_layer.weight) {
            float *action_gradient = workspace.action_gradient.get(rows * actions.outputs),
                  *value_gradient = workspace.value_gradient.get(rows * numbers);
            add_value_backward(upstream, rows, actions.outputs / numbers, numbers, action_gradient, value_gradient);
            apply_head_backward(value_layer, units_fp32, rows, pitch, 0, value_gradient, layer_gradients[2],
                                workspace, units_gradient);
            upstream = action_gradient;
        }
        apply_head_backward(actions, units_fp32, rows, pitch, pitch - actions.inputs, upstream, layer_gradients[1],
                            workspace, units_gradient);
        hidden_relu_backward<Format>(units, units_gradient, rows * pitch, static_cast<value*>(hidden_gradient));
        void* encoded_gradient = workspace.encoded_gradient.get(rows * hidden.inputs * sizeof(value));
        apply_layer_backward(hidden, unit, encoded, hidden_gradient, rows, layer_gradients[0], encoded_gradient);
        encode_backward(unit, pixels, are_fp32, in_planes, shapes, convolutions, weights, kept_outputs, encoded,
                        encoded_gradient, weight_gradients, bias_gradients);
    });
}
