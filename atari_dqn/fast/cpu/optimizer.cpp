// What an optimizer does with every weight: the norm of all gradients, and a step of DeepMind's RMSProp or of Adam, in
// one pass each over tensors that lie in one piece. Blocks are as long whatever the threads, and so are sums.
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

// The tensors that are moved, and their gradients.
struct Tensors {
    float* const* weights;
    const float* const* gradients;
    float* const* means;
    float* const* mean_squares;
};

static void move_rmsprop(float* __restrict weight, const float* __restrict gradient,
                                            float* __restrict mean, float* __restrict mean_square, std::int64_t count,
                                            float learning_rate, float epsilon, float of_gradient, float decay,
                                            float of_square) {
    for (std::int64_t i = 0; i < count; ++i) {
        const float d = gradient[i];
        const float g = mean[i] + of_gradient * (d - mean[i]);
        const float n = mean_square[i] * decay + of_square * d * d;
        mean[i] = g;
        mean_square[i] = n;
        weight[i] -= learning_rate * d / std::sqrt(n - g * g + epsilon);
    }
}

static void move_adam(float* __restrict weight, const float* __restrict gradient,
                                         float* __restrict mean, float* __restrict mean_square, std::int64_t count,
                                         float learning_rate, float epsilon, float of_gradient, float decay,
                                         float of_square, float root) {
    for (std::int64_t i = 0; i < count; ++i) {
        const float d = gradient[i];
        const float m = mean[i] + of_gradient * (d - mean[i]);
        const float v = mean_square[i] * decay + of_square * d * d;
        mean[i] = m;
        mean_square[i] = v;
        weight[i] -= learning_rate * m / (std::sqrt(v) / root + epsilon);
    }
}

static double sum_of_squares(const float* x, std::int64_t count) {
    constexpr int kLanes = 64, kPiece = 1024;  // sums of 16 squares in single precision, then in double; the rest in one
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

// Calls `move` with each block of all tensors.
template <class Move>
static void for_each_block(Tensors of, const std::int64_t* counts, std::int64_t tensors, Move move) {
    const std::vector<Block> blocks = blocks_of(counts, tensors);
    for_each_piece(blocks.size(), [&](std::size_t i) {
        const auto [tensor, at, count] = blocks[i];
        move(of.weights[tensor] + at, of.gradients[tensor] + at, of.means[tensor] + at, of.mean_squares[tensor] + at,
             count);
    });
}

// Moves weights. `of_gradient` and `of_square` are 1 less the decays: what a new gradient counts.
extern "C" void rmsprop(float* const* weights, const float* const* gradients, float* const* means,
                        float* const* mean_squares, const std::int64_t* counts, std::int64_t tensors,
                        float learning_rate, float epsilon, float of_gradient, float decay, float of_square) {
    for_each_block({weights, gradients, means, mean_squares}, counts, tensors,
                   [=](float* weight, const float* gradient, float* mean, float* mean_square, std::int64_t count) {
                       move_rmsprop(weight, gradient, mean, mean_square, count, learning_rate, epsilon, of_gradient,
                                    decay, of_square);
                   });
}

// The same by Adam: `learning_rate` over the means' correction for their start at 0, `root` that of the squares.
extern "C" void adam(float* const* weights, const float* const* gradients, float* const* means,
                     float* const* mean_squares, const std::int64_t* counts, std::int64_t tensors, float learning_rate,
                     float epsilon, float of_gradient, float decay, float of_square, float root) {
    for_each_block({weights, gradients, means, mean_squares}, counts, tensors,
                   [=](float* weight, const float* gradient, float* mean, float* mean_square, std::int64_t count) {
                       move_adam(weight, gradient, mean, mean_square, count, learning_rate, epsilon, of_gradient, decay,
                                 of_square, root);
                   });
}

// The root of the sum of all squares.
extern "C" double norm(const float* const* tensors, const std::int64_t* counts, std::int64_t number) {
    const std::vector<Block> blocks = blocks_of(counts, number);
    std::vector<double> sums(blocks.size());
    for_each_piece(blocks.size(), [&](std::size_t i) {
        sums[i] = sum_of_squares(tensors[blocks[i].tensor] + blocks[i].begin, blocks[i].count);
    });
    double total = 0;
    for (const double sum : sums) total += sum;
    return std::sqrt(total);
}
