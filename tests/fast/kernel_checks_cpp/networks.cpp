// Whole networks, forward and backward in one call each: two convolutions, a hidden layer, a head.
#include "checks.hpp"

struct Layer {
    const void* weight;
    const float *bias, *deviation, *bias_deviation, *noise_in, *noise_out;
    int64_t inputs, outputs;
};
struct OfLayer {
    float *weight, *bias, *deviation, *bias_deviation;
};

extern "C" {
void forward(int unit, const void* pixels, int are_fp32, int in_planes, const int64_t* shapes, int64_t convolutions,
             const void* const* weights, const float* const* biases, const Layer* layers, float* noise, int64_t draws,
             int64_t numbers, void* const* kept_outputs, float* outputs);
void backward(int unit, const void* pixels, int are_fp32, int in_planes, const int64_t* shapes, int64_t convolutions,
              const void* const* weights, const Layer* layers, int64_t numbers, const void* const* kept_outputs,
              const float* upstream, float* const* of_weights, float* const* of_biases, const OfLayer* of_layers,
              void* of_hidden);
}

// The gradients of a layer, as the kernels write them.
struct Room {
    Numbers weight, bias, deviation, bias_deviation;

    explicit Room(const Dense& layer)
        : weight(layer.weight.size()), bias(layer.outputs), deviation(weight.size()), bias_deviation(layer.outputs) {}
    OfLayer at() { return {weight.data(), bias.data(), deviation.data(), bias_deviation.data()}; }
    void compare_with(const OfDense& expected, bool noisy, const std::string& name) const {
        compare("gradient of weights, " + name, weight, expected.weight);
        compare("gradient of biases, " + name, bias, expected.bias);
        if (!noisy) return;
        compare("gradient of deviations, " + name, deviation, expected.deviation);
        compare("gradient of biases' deviations, " + name, bias_deviation, expected.bias_deviation);
    }
};

struct Kind {
    std::string name;
    bool dueling, noisy;
    size_t actions, numbers;  // of each action
};

// A network, drawn, and what the kernels make of it.
class Network {
  public:
    Network(const Kind& kind, int64_t batch, bool of_fp32)
        : kind_(kind), of_fp32_(of_fp32),
          name_(kind.name + ", " + std::to_string(batch) + (of_fp32 ? " images of fp32" : " images")),
          rows_(size_t(batch)), half_(kind.dueling ? 64 : 96), pitch_(kind.dueling ? 128 : 96) {
        for (Convolution& layer : layers_) layer.batch = batch;
        const size_t values = kind.actions * kind.numbers;
        dense_ = {{128, pitch_, kind.noisy}, {half_, values, kind.noisy}, {half_, kind.numbers, kind.noisy}};
        for (const Dense& layer : dense_) draws_ += layer.inputs + layer.outputs;
        noise_ = drawn(draws_);
        bytes_ = drawn_bytes(layers_[0].in());
        images_.assign(bytes_.begin(), bytes_.end());
        kept_ = {Numbers(layers_[0].out()), Numbers(layers_[1].out()), Numbers(rows_ * pitch_)};
        for (size_t i = 0; i < kept_.size(); ++i) kept_at_[i] = kept_[i].data();
        upstream_ = drawn(rows_ * values);
    }

    void check_forward() {
        const Numbers draws = noise_;
        const Numbers outputs = passed(true), &hidden = kept_[2];
        if (kind_.noisy) {
            Exact roots;
            for (const float draw : draws) roots.push_back(std::copysign(std::sqrt(std::fabs(draw)), draw));
            compare("noise, " + name_, noise_, roots, 1e-6);
            set_noise();
        }
        noise_ = draws;
        compare("outputs, nothing kept, " + name_, passed(false), exact(outputs), 0);
        compare("hidden units, " + name_, hidden, rectified(dense_[0].apply(exact(kept_[1]))));
        Exact expected = dense_[1].apply(units(pitch_ - half_));
        if (kind_.dueling) {
            const Exact worth = dense_[2].apply(units(0)), mean = sums_of_actions(expected);
            for (size_t i = 0; i < expected.size(); ++i)
                expected[i] += worth[state(i)] - mean[state(i)] / double(kind_.actions);
        }
        compare("outputs, " + name_, outputs, expected);
    }

    // After `check_forward`.
    void check_backward(bool written) {
        std::vector<Room> rooms(dense_.begin(), dense_.end());
        Numbers of_weights[] = {Numbers(weights_[0].size()), Numbers(weights_[1].size())};
        Numbers of_biases[] = {Numbers(32), Numbers(32)}, of_hidden(rows_ * pitch_);
        float* of_weights_at[] = {of_weights[0].data(), of_weights[1].data()};
        float* of_biases_at[] = {of_biases[0].data(), of_biases[1].data()};
        std::vector<OfLayer> of_layers;
        for (Room& room : rooms) of_layers.push_back(room.at());
        if (!written) of_layers[0].weight = of_layers[0].deviation = nullptr;
        if (!kind_.dueling) of_layers[2] = {};
        backward(0, pixels(), of_fp32_, 0, &layers_[0].batch, 2, weights_at_, arguments().data(),
                 int64_t(kind_.numbers), kept_at_, upstream_.data(), of_weights_at, of_biases_at, of_layers.data(),
                 of_hidden.data());

        Exact of_units(rows_ * pitch_), of_actions = exact(upstream_);
        if (kind_.dueling) {
            const Exact of_state = sums_of_actions(of_actions);
            for (size_t i = 0; i < of_actions.size(); ++i)
                of_actions[i] -= of_state[state(i)] / double(kind_.actions);
            add_gradient(dense_[2], 0, of_state, rooms[2], "state, ", of_units);
        }
        add_gradient(dense_[1], pitch_ - half_, of_actions, rooms[1], "actions, ", of_units);
        const Exact of_rows = let_through(of_units, kept_[2]);
        compare("gradient of hidden units, " + name_, of_hidden, of_rows);
        const OfDense of_dense(dense_[0], exact(kept_[1]), of_rows);
        if (written) rooms[0].compare_with(of_dense, kind_.noisy, "hidden layer, " + name_);

        const Numbers encoded = transposed(kept_[1], rows_, 32, 4);
        const Exact flow = transposed(of_dense.x, rows_, 32, 4);
        const OfConvolution second(layers_[1], kept_[0], weights_[1], let_through(flow, encoded));
        const OfConvolution first(layers_[0], images_, weights_[0], let_through(second.x, kept_[0]));
        compare("gradient of the first weights, " + name_, of_weights[0], first.weight);
        compare("gradient of the second weights, " + name_, of_weights[1], second.weight);
        compare("gradient of the first biases, " + name_, of_biases[0], first.bias);
        compare("gradient of the second biases, " + name_, of_biases[1], second.bias);
    }

  private:
    const void* pixels() const { return of_fp32_ ? static_cast<const void*>(images_.data()) : bytes_.data(); }
    std::vector<Layer> arguments() {
        std::vector<Layer> given;
        const float* from = noise_.data();
        for (const Dense& layer : dense_) {
            given.push_back({layer.weight.data(), layer.bias.data(), nullptr, nullptr, nullptr, nullptr,
                             int64_t(layer.inputs), int64_t(layer.outputs)});
            if (kind_.noisy) {
                given.back().deviation = layer.deviation.data(), given.back().noise_in = from;
                given.back().bias_deviation = layer.bias_deviation.data(),
                given.back().noise_out = from + layer.inputs;
            }
            from += layer.inputs + layer.outputs;
        }
        if (!kind_.dueling) given[2] = {};
        return given;
    }
    // What a forward pass puts out; it makes noise of the draws in `noise_`.
    Numbers passed(bool keep) {
        Numbers outputs(upstream_.size());
        forward(0, pixels(), of_fp32_, 0, &layers_[0].batch, 2, weights_at_, biases_at_, arguments().data(),
                noise_.data(), kind_.noisy ? int64_t(draws_) : 0, int64_t(kind_.numbers), keep ? kept_at_ : nullptr,
                outputs.data());
        return outputs;
    }
    // Gives the layers that results are compared with the noise that a pass made.
    void set_noise() {
        const float* from = noise_.data();
        for (Dense& layer : dense_) {
            layer.noise_in.assign(from, from + layer.inputs);
            layer.noise_out.assign(from + layer.inputs, from + layer.inputs + layer.outputs);
            from += layer.inputs + layer.outputs;
        }
    }
    // The hidden units of each row that a layer of the head reads, from `begin` on.
    Exact units(size_t begin) const {
        Exact some;
        for (size_t row = 0; row < rows_; ++row)
            for (size_t i = 0; i < half_; ++i) some.push_back(kept_[2][row * pitch_ + begin + i]);
        return some;
    }
    void add_gradient(const Dense& layer, size_t begin, const Exact& upstream, const Room& found, const char* which,
                      Exact& of_units) const {
        const OfDense gradients(layer, units(begin), upstream);
        found.compare_with(gradients, kind_.noisy, which + name_);
        for (size_t at = 0; at < gradients.x.size(); ++at)
            of_units[at / half_ * pitch_ + begin + at % half_] += gradients.x[at];
    }
    // The number of a state's value that an action's number is added to.
    size_t state(size_t at) const {
        return at / (kind_.actions * kind_.numbers) * kind_.numbers + at % kind_.numbers;
    }
    Exact sums_of_actions(const Exact& each) const {
        Exact sums(rows_ * kind_.numbers);
        for (size_t i = 0; i < each.size(); ++i) sums[state(i)] += each[i];
        return sums;
    }

    const Kind& kind_;
    const bool of_fp32_;
    const std::string name_;
    const size_t rows_, half_, pitch_;
    Convolution layers_[2] = {{0, 28, 28, 4, 8, 8, 4, 0, 0, 0, 0, 32}, {0, 6, 6, 32, 4, 4, 2, 0, 0, 0, 0, 32}};
    const Numbers weights_[2] = {drawn(layers_[0].weights(), 0.001), drawn(layers_[1].weights(), 0.1)};
    const Numbers biases_[2] = {drawn(32), drawn(32)};
    const void* weights_at_[2] = {weights_[0].data(), weights_[1].data()};
    const float* biases_at_[2] = {biases_[0].data(), biases_[1].data()};
    std::vector<Dense> dense_;
    size_t draws_ = 0;
    Numbers noise_, upstream_, images_;
    std::vector<uint8_t> bytes_;
    std::vector<Numbers> kept_;
    void* kept_at_[3] = {};
};

void check_networks() {
    const Kind kinds[] = {
        {"linear head", false, false, 6, 1},    {"noisy linear head", false, true, 6, 1},
        {"dueling head", true, false, 6, 1},    {"noisy dueling head", true, true, 18, 1},
        {"head of atoms", false, false, 6, 51}, {"noisy dueling head of atoms", true, true, 6, 51},
    };
    for (const Kind& kind : kinds)
        for (const int64_t batch : {1, 3, 33}) {
            Network network(kind, batch, batch == 3);
            network.check_forward();
            network.check_backward(true);
            network.check_backward(false);
        }
}
