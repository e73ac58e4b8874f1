// Stacks of convolutions on bytes and on floats, as the torsos of the agents have them.
#include "../../../atari_dqn/fast/cpu/calls.hpp"
#include "checks.hpp"

// A stack: each layer is compared given what the kernels put out before it, so that roundings do not add up.
static void check_stack(std::string name, int64_t batch, std::vector<Convolution> layers, bool planes, bool floats,
                        bool areas) {
    if (areas) name += ", areas of one colour";
    std::vector<Numbers> weights, biases, outputs, of_weights, of_biases;
    std::vector<const void*> weights_at, outputs_at;
    std::vector<const float*> biases_at;
    std::vector<void*> to;
    std::vector<float*> of_weights_at, of_biases_at;
    for (Convolution& layer : layers) {
        layer.batch = batch;
        weights.push_back(drawn(layer.weights(), std::sqrt(2.0 * double(layer.filters) / double(layer.weights()))));
        biases.push_back(drawn(size_t(layer.filters)));
        outputs.emplace_back(layer.out());
        of_weights.emplace_back(layer.weights());
        of_biases.emplace_back(size_t(layer.filters));
    }
    for (size_t i = 0; i < layers.size(); ++i) {
        weights_at.push_back(weights[i].data()), biases_at.push_back(biases[i].data());
        outputs_at.push_back(outputs[i].data()), to.push_back(outputs[i].data());
        of_weights_at.push_back(of_weights[i].data()), of_biases_at.push_back(of_biases[i].data());
    }
    const Convolution &first = layers.front(), &last = layers.back();
    const size_t pixels = size_t(last.out_height() * last.out_width()), filters = size_t(last.filters);
    const std::vector<uint8_t> bytes = areas ? drawn_areas(first) : drawn_bytes(first.in());  // channels last
    const std::vector<uint8_t> given =
        planes ? transposed(bytes, size_t(batch), size_t(first.height * first.width), size_t(first.channels)) : bytes;
    const Numbers images(bytes.begin(), bytes.end()), upstream = drawn(last.out()), wide(given.begin(), given.end());
    const void* pixels_at = floats ? static_cast<const void*>(wide.data()) : given.data();
    Numbers encoded(last.out()), again(last.out());
    const auto count = int64_t(layers.size());
    const std::string where = name + (floats ? ", floats" : "") + (planes ? ", planes, " : ", ") +
                              std::to_string(batch) + " images, layer ";

    encode(0, pixels_at, floats, planes, &first.batch, count, weights_at.data(), biases_at.data(), to.data(),
           encoded.data());
    encode(0, pixels_at, floats, planes, &first.batch, count, weights_at.data(), biases_at.data(), nullptr,
           again.data());
    compare(where + "last, not kept", again, exact(encoded), 0);
    // floats, of which no patches are found to be equal, give the same bits
    const std::vector<Numbers> kept(outputs.begin(), outputs.end() - 1);
    encode(0, wide.data(), true, planes, &first.batch, count, weights_at.data(), biases_at.data(), to.data(),
           again.data());
    compare(where + "last, as floats", again, exact(encoded), 0);
    for (size_t i = 0; i < kept.size(); ++i)
        compare(where + std::to_string(i) + ", as floats", outputs[i], exact(kept[i]), 0);
    outputs.back() = transposed(encoded, size_t(batch), filters, pixels);
    const auto input = [&](size_t i) -> const Numbers& {
        return i ? outputs[i - 1] : images;
    };
    for (size_t i = 0; i < layers.size(); ++i)
        compare(where + std::to_string(i), outputs[i], rectified(layers[i].apply(input(i), weights[i], biases[i])));

    encode_backward(0, pixels_at, floats, planes, &first.batch, count, weights_at.data(), outputs_at.data(),
                    encoded.data(), upstream.data(), of_weights_at.data(), of_biases_at.data());
    Exact flow = transposed(exact(upstream), size_t(batch), filters, pixels);
    for (size_t i = layers.size(); i-- > 0;) {
        const OfConvolution gradients(layers[i], input(i), weights[i], let_through(flow, outputs[i]));
        compare("gradient of weights, " + where + std::to_string(i), of_weights[i], gradients.weight);
        compare("gradient of biases, " + where + std::to_string(i), of_biases[i], gradients.bias);
        flow = gradients.x;
    }
}

static void check_stack(const std::string& name, int64_t batch, const std::vector<Convolution>& layers, bool planes) {
    for (const bool floats : {false, true})
        for (const bool areas : {false, true}) check_stack(name, batch, layers, planes, floats, areas);
}

void check_convolutions() {
    const std::vector<Convolution> nature = {
        {0, 84, 84, 4, 8, 8, 4, 0, 0, 0, 0, 32},
        {0, 20, 20, 32, 4, 4, 2, 0, 0, 0, 0, 64},
        {0, 9, 9, 64, 3, 3, 1, 0, 0, 0, 0, 64},
    };
    const std::vector<Convolution> dopamine = {
        {0, 84, 84, 4, 8, 8, 4, 2, 2, 2, 2, 32},
        {0, 21, 21, 32, 4, 4, 2, 1, 2, 1, 2, 64},
        {0, 11, 11, 64, 3, 3, 1, 1, 1, 1, 1, 64},
    };
    const std::vector<Convolution> data_efficient = {
        // kernel rows of 20 values
        {0, 42, 42, 4, 5, 5, 5, 0, 0, 0, 0, 32},
        {0, 8, 8, 32, 5, 5, 5, 0, 0, 0, 0, 64},
    };
    const std::vector<Convolution> small = {
        {0, 36, 36, 4, 8, 8, 4, 0, 0, 0, 0, 32},
        {0, 8, 8, 32, 4, 4, 2, 0, 0, 0, 0, 32},
    };
    const std::vector<Convolution> short_rows = {
        // of 4 and of 3 pixels, of images with zeros around them
        {0, 16, 16, 4, 8, 8, 4, 2, 2, 2, 2, 32},
        {0, 4, 4, 32, 2, 2, 2, 1, 1, 1, 1, 64},
    };
    const std::vector<Convolution> narrow = {{0, 16, 12, 2, 3, 3, 1, 1, 1, 1, 1, 32}};   // kernel rows of 6 bytes
    const std::vector<Convolution> colours = {{0, 13, 11, 3, 3, 3, 2, 1, 0, 1, 1, 32}};  // of 9
    // first, so that what is read behind the last image of the kernels' own memory is behind all of it
    check_stack("kernels up to the edge", 9, {{0, 10, 10, 4, 5, 5, 5, 0, 0, 0, 0, 32}}, false);
    check_stack("Nature", 1, nature, true);
    check_stack("Dopamine", 1, dopamine, false);
    check_stack("data-efficient at 84 pixels", 1, {{0, 84, 84, 4, 5, 5, 5, 0, 0, 0, 0, 32}}, true);
    for (const int64_t batch : {1, 3, 33}) check_stack("data-efficient", batch, data_efficient, false);
    check_stack("data-efficient", 129, data_efficient, true);
    for (const int64_t batch : {9, 33}) check_stack("Nature at 36 pixels", batch, small, batch == 9);
    for (const int64_t batch : {1, 9}) check_stack("short rows", batch, short_rows, batch == 1);
    check_stack("narrow kernels", 3, narrow, true);
    for (const int64_t batch : {1, 65}) check_stack("three channels", batch, colours, batch == 65);
}
