// Fully connected layers, plain and noisy, and the steps of optimizers by gradients that are kept as factors.
#include "../../../atari_dqn/fast/cpu/calls.hpp"
#include "checks.hpp"

struct Moved {
    float *weight, *mean, *mean_square;
};

extern "C" {
void step_by_product(int unit, const void* x, const void* upstream, int64_t batch, int64_t inputs, int64_t outputs,
                     const float* noise_in, const float* noise_out, float scale, const Moved* moved, int rule,
                     const float* numbers);
double squares_of_product(int unit, const void* x, const void* upstream, int64_t batch, int64_t inputs,
                          int64_t outputs, const float* noise_in, const float* noise_out);
}

static void check_layer(size_t rows, const Dense& layer, bool relu) {
    const auto batch = int64_t(rows), inputs = int64_t(layer.inputs), outputs = int64_t(layer.outputs);
    const std::string name = std::string(layer.noisy ? "noisy layer, " : "layer, ") + std::to_string(rows) +
                             " rows, " + std::to_string(inputs) + " to " + std::to_string(outputs) +
                             (relu ? ", ReLU" : "");
    const Numbers x = drawn(rows * layer.inputs), upstream = drawn(rows * layer.outputs);
    Numbers y(upstream.size()), of_x(x.size()), of_weight(layer.weight.size()), of_deviation(of_weight.size());
    Numbers of_bias(layer.outputs), of_bias_deviation(layer.outputs);
    if (layer.noisy)
        multiply_noisy(0, x.data(), layer.weight.data(), layer.deviation.data(), layer.noise_in.data(),
                       layer.noise_out.data(), layer.bias.data(), layer.bias_deviation.data(), batch, inputs, outputs,
                       relu, y.data());
    else
        multiply(0, x.data(), layer.weight.data(), layer.bias.data(), batch, inputs, outputs, relu, y.data());
    const Exact sums = layer.apply(exact(x));
    compare(name, y, relu ? rectified(sums) : sums);

    const OfDense gradients(layer, exact(x), exact(upstream));
    if (layer.noisy) {
        multiply_noisy_backward(0, x.data(), layer.weight.data(), layer.deviation.data(), layer.noise_in.data(),
                                layer.noise_out.data(), upstream.data(), batch, inputs, outputs, of_weight.data(),
                                of_deviation.data(), of_bias.data(), of_bias_deviation.data(), of_x.data());
        compare("gradient of deviations, " + name, of_deviation, gradients.deviation);
        compare("gradient of biases' deviations, " + name, of_bias_deviation, gradients.bias_deviation);
    } else {
        multiply_backward(0, x.data(), layer.weight.data(), upstream.data(), batch, inputs, outputs, of_weight.data(),
                          of_bias.data(), of_x.data());
        Numbers alone(of_x.size());
        multiply_backward(0, x.data(), layer.weight.data(), upstream.data(), batch, inputs, outputs, nullptr,
                          of_bias.data(), alone.data());
        compare("gradient of inputs alone, " + name, alone, exact(of_x), 0);
    }
    compare("gradient of inputs, " + name, of_x, gradients.x);
    compare("gradient of weights, " + name, of_weight, gradients.weight);
    compare("gradient of biases, " + name, of_bias, gradients.bias);
}

// What DeepMind's RMSProp (rule 0) or Adam (rule 1) makes of weights and averages.
struct Stepped {
    Exact weight, mean, mean_square;

    Stepped(const Exact& gradient, const Numbers& before, const Numbers& first, const Numbers& second, int rule,
            const Numbers& numbers)
        : weight(exact(before)), mean(exact(first)), mean_square(exact(second)) {
        const double rate = numbers[0], epsilon = numbers[1], of_gradient = numbers[2], decay = numbers[3];
        for (size_t i = 0; i < gradient.size(); ++i) {
            const double d = gradient[i];
            mean[i] += of_gradient * (d - mean[i]);
            mean_square[i] = decay * mean_square[i] + numbers[4] * d * d;
            if (rule == 0) weight[i] -= rate * d / std::sqrt(mean_square[i] - mean[i] * mean[i] + epsilon);
            if (rule == 1) weight[i] -= rate * mean[i] / (std::sqrt(mean_square[i]) / numbers[5] + epsilon);
        }
    }
};

static void check_step(size_t rows, const Dense& layer, int rule) {
    const Numbers numbers = {0.5f, 0.01f, 0.05f, 0.95f, 0.05f, 0.3f};
    const float scale = 0.25f;
    const std::string name = "step " + std::to_string(rule) + (layer.noisy ? " with noise, " : ", ") +
                             std::to_string(rows) + " rows, " + std::to_string(layer.inputs) + " to " +
                             std::to_string(layer.outputs);
    const Numbers x = drawn(rows * layer.inputs), upstream = drawn(rows * layer.outputs, 0.1);
    const OfDense gradients(layer, exact(x), exact(upstream));
    const float* noise_in = layer.noisy ? layer.noise_in.data() : nullptr;
    const float* noise_out = layer.noisy ? layer.noise_out.data() : nullptr;
    const std::vector<Numbers> before = {layer.weight, layer.deviation};
    std::vector<Numbers> weights = before, means, squares;
    for (size_t i = 0; i < 2; ++i) {
        means.push_back(drawn(layer.weight.size(), 0.01));
        squares.push_back(drawn(layer.weight.size()));
        for (float& square : squares[i]) square = square * square + 0.1f;
    }
    const std::vector<Numbers> means_before = means, squares_before = squares;
    const Moved moved[] = {{weights[0].data(), means[0].data(), squares[0].data()},
                           {weights[1].data(), means[1].data(), squares[1].data()}};
    step_by_product(0, x.data(), upstream.data(), int64_t(rows), int64_t(layer.inputs), int64_t(layer.outputs),
                    noise_in, noise_out, scale, moved, rule, numbers.data());
    double sum = 0;
    for (size_t i = 0; i < (layer.noisy ? 2 : 1); ++i) {
        Exact gradient = i ? gradients.deviation : gradients.weight;
        for (double& each : gradient) sum += each * each, each *= scale;
        const Stepped expected(gradient, before[i], means_before[i], squares_before[i], rule, numbers);
        compare("weights, " + name, weights[i], expected.weight);
        compare("means, " + name, means[i], expected.mean);
        compare("mean squares, " + name, squares[i], expected.mean_square);
    }
    if (!layer.noisy) compare("deviations, untouched, " + name, weights[1], exact(before[1]), 0);
    const double found = squares_of_product(0, x.data(), upstream.data(), int64_t(rows), int64_t(layer.inputs),
                                            int64_t(layer.outputs), noise_in, noise_out);
    compare("squares, " + name, Exact{found}, {sum});
}

void check_layers() {
    const auto most = size_t(block());
    for (const bool noisy : {false, true})
        for (const bool relu : {false, true}) {
            for (const size_t rows : {1, 9}) check_layer(rows, {3136, 64, noisy}, relu);
            for (const size_t rows : {8, 33}) check_layer(rows, {160, 306, noisy}, relu);
            for (const size_t rows : {1, 3, 8, 9, 33, 65, 129}) {
                check_layer(rows, {96, 51, noisy}, relu);
                check_layer(rows, {3 * most, most + 1, noisy}, relu);
                check_layer(rows, {most, 2 * most - 1, noisy}, relu);
            }
        }
    for (const bool noisy : {false, true})
        for (const int rule : {0, 1})
            for (const size_t rows : {1, 3, 9, 33, 65, 128}) check_step(rows, {160, 32, noisy}, rule);
}
