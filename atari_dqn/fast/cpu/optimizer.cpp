// The work of an optimizer on every weight: the norm of all gradients, and a step of DeepMind's RMSProp or of Adam,
// each in one pass over contiguous tensors. Neither blocks nor, therefore, sums depend on the number of threads.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "threads.hpp"

namespace {

constexpr std::int64_t kBlock = 1 << 14;

struct Block {
    std::int64_t tensor, begin, count;
};

std::vector<Block> blocks_of(const std::int64_t* counts, std::int64_t tensors) {
    std::vector<Block> blocks;
    for (std::int64_t tensor = 0; tensor < tensors; ++tensor)
        for (std::int64_t at = 0; at < counts[tensor]; at += kBlock)
            blocks.push_back({tensor, at, std::min(kBlock, counts[tensor] - at)});
    return blocks;
}

}  // namespace

// The tensors to be updated and their gradients.
struct Tensors {
    float* const* weights;
    const float* const* gradients;
    float* const* means;
    float* const* mean_squares;
};

static void update_rmsprop(float* __restrict weight, const float* __restrict gradient, float* __restrict mean,
                           float* __restrict mean_square, std::int64_t count, float learning_rate, float epsilon,
                           float mean_smoothing, float square_decay, float square_smoothing) {
    for (std::int64_t i = 0; i < count; ++i) {
        const float d = gradient[i];
        const float g = mean[i] + mean_smoothing * (d - mean[i]);
        const float n = mean_square[i] * square_decay + square_smoothing * d * d;
        mean[i] = g;
        mean_square[i] = n;
        weight[i] -= learning_rate * d / std::sqrt(std::max(n - g * g, 0.0f) + epsilon);
    }
}

static void update_adam(float* __restrict weight, const float* __restrict gradient, float* __restrict mean,
                        float* __restrict mean_square, std::int64_t count, float learning_rate, float epsilon,
                        float mean_smoothing, float square_decay, float square_smoothing,
                        float bias_correction2_sqrt) {
    for (std::int64_t i = 0; i < count; ++i) {
        const float d = gradient[i];
        const float m = mean[i] + mean_smoothing * (d - mean[i]);
        const float v = mean_square[i] * square_decay + square_smoothing * d * d;
        mean[i] = m;
        mean_square[i] = v;
        weight[i] -= learning_rate * m / (std::sqrt(v) / bias_correction2_sqrt + epsilon);
    }
}

static double sum_of_squares(const float* x, std::int64_t count) {
    // Sums of 16 squares in single precision, then in double; the remainder of a tensor goes to the first sum.
    constexpr int kLanes = 64, kPiece = 1024;
    double totals[kLanes] = {};
    for (std::int64_t at = 0; at < count; at += kPiece) {
        const std::int64_t end = std::min<std::int64_t>(at + kPiece, count);
        float sums[kLanes] = {};
        std::int64_t i = at;
        for (; i + kLanes <= end; i += kLanes)
            for (int lane = 0; lane < kLanes; ++lane) sums[lane] += x[i + lane] * x[i + lane];
        for (; i < end; ++i) sums[0] += x[i] * x[i];
        for (int lane = 0; lane < kLanes; ++lane) totals[lane] += sums[lane];
    }
    double total = 0;
    for (const double each : totals) total += each;
    return total;
}

// Calls `update` with each block of all tensors.
template <class Update>
static void for_each_block(Tensors pointers, const std::int64_t* counts, std::int64_t tensors, Update update) {
    const std::vector<Block> blocks = blocks_of(counts, tensors);
    for_each_piece(blocks.size(), [&](std::size_t i) {
        const auto [tensor, at, count] = blocks[i];
        update(pointers.weights[tensor] + at, pointers.gradients[tensor] + at, pointers.means[tensor] + at,
               pointers.mean_squares[tensor] + at, count);
    });
}

// Updates weights by RMSProp. `mean_smoothing` and `square_smoothing` are 1 − decay: the weight of the new gradient
// in the moving averages.
extern "C" void rmsprop(float* const* weights, const float* const* gradients, float* const* means,
                        float* const* mean_squares, const std::int64_t* counts, std::int64_t tensors,
                        float learning_rate, float epsilon, float mean_smoothing, float square_decay,
                        float square_smoothing) {
    for_each_block({weights, gradients, means, mean_squares}, counts, tensors,
                   [=](float* weight, const float* gradient, float* mean, float* mean_square, std::int64_t count) {
                       update_rmsprop(weight, gradient, mean, mean_square, count, learning_rate, epsilon,
                                      mean_smoothing, square_decay, square_smoothing);
                   });
}

// As `rmsprop`, for Adam: `learning_rate` is already divided by the bias correction 1 − β₁ᵗ of the mean, and
// `bias_correction2_sqrt` is √(1 − β₂ᵗ).
extern "C" void adam(float* const* weights, const float* const* gradients, float* const* means,
                     float* const* mean_squares, const std::int64_t* counts, std::int64_t tensors,
                     float learning_rate, float epsilon, float mean_smoothing, float square_decay,
                     float square_smoothing, float bias_correction2_sqrt) {
    for_each_block({weights, gradients, means, mean_squares}, counts, tensors,
                   [=](float* weight, const float* gradient, float* mean, float* mean_square, std::int64_t count) {
                       update_adam(weight, gradient, mean, mean_square, count, learning_rate, epsilon, mean_smoothing,
                                   square_decay, square_smoothing, bias_correction2_sqrt);
                   });
}

// Computes the Euclidean norm of all tensors together.
extern "C" double norm(const float* const* tensors, const std::int64_t* counts, std::int64_t num_tensors) {
    const std::vector<Block> blocks = blocks_of(counts, num_tensors);
    std::vector<double> sums(blocks.size());
    for_each_piece(blocks.size(), [&](std::size_t i) {
        sums[i] = sum_of_squares(tensors[blocks[i].tensor] + blocks[i].begin, blocks[i].count);
    });
    double total = 0;
    for (const double sum : sums) total += sum;
    return std::sqrt(total);
}
