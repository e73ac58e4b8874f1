// What is computed for any processor: the norm, the optimizers, stacks of frames and the tree of priorities.
#include <cstring>
#include <limits>

#include "checks.hpp"

extern "C" {
double norm(const float* const* tensors, const int64_t* counts, int64_t number);
void rmsprop(float* const* weights, const float* const* gradients, float* const* means, float* const* squares,
             const int64_t* counts, int64_t tensors, float learning_rate, float epsilon, float of_gradient,
             float decay, float of_square);
void adam(float* const* weights, const float* const* gradients, float* const* means, float* const* squares,
          const int64_t* counts, int64_t tensors, float learning_rate, float epsilon, float of_gradient, float decay,
          float of_square, float root);
bool gather_stacks(const uint8_t* frames, const uint8_t* starts, int64_t size, int64_t envs, int64_t stack,
                   int64_t frame_bytes, const int64_t* at, int64_t count, uint8_t* to);
void find_indices(const double* const* sums, int64_t levels, int64_t fan_out, const double* masses, int64_t count,
                  int64_t* found);
void draw_indices(const double* const* sums, const double* const* minima, int64_t levels, int64_t fan_out,
                  const double* units, int64_t rows, int64_t strata, double exponent, int64_t* found, float* weights);
bool set_priorities(double* const* sums, double* const* minima, int64_t levels, int64_t fan_out, int64_t leaves,
                    const int64_t* at, const double* priorities, int64_t count);
bool set_by_errors(double* const* sums, double* const* minima, int64_t levels, int64_t fan_out, int64_t leaves,
                   const int64_t* at, const float* errors, int64_t count, double offset, double alpha,
                   double* highest);
}

static void check_optimizers() {
    const int64_t counts[] = {1, 17, 40'000, 1024};
    const float rate = 0.5f, epsilon = 0.01f, of_gradient = 0.05f, decay = 0.95f, of_square = 0.05f, root = 0.3f;
    for (const int rule : {0, 1}) {
        std::vector<Numbers> weights, gradients, means, squares;
        std::vector<float*> at[3];
        std::vector<const float*> gradients_at;
        for (const int64_t count : counts) {
            weights.push_back(drawn(size_t(count))), gradients.push_back(drawn(size_t(count)));
            means.push_back(drawn(size_t(count), 0.01)), squares.push_back(drawn(size_t(count)));
            for (float& square : squares.back()) square = square * square + 0.1f;
        }
        for (size_t i = 0; i < weights.size(); ++i) {
            at[0].push_back(weights[i].data()), at[1].push_back(means[i].data()), at[2].push_back(squares[i].data());
            gradients_at.push_back(gradients[i].data());
        }
        const std::vector<Numbers> before[] = {weights, means, squares};
        if (rule == 0)
            rmsprop(at[0].data(), gradients_at.data(), at[1].data(), at[2].data(), counts, 4, rate, epsilon,
                    of_gradient, decay, of_square);
        else
            adam(at[0].data(), gradients_at.data(), at[1].data(), at[2].data(), counts, 4, rate, epsilon, of_gradient,
                 decay, of_square, root);
        double sum = 0;
        for (size_t i = 0; i < weights.size(); ++i) {
            Exact weight = exact(before[0][i]), mean = exact(before[1][i]), square = exact(before[2][i]);
            for (size_t j = 0; j < weight.size(); ++j) {
                const double d = gradients[i][j];
                sum += d * d;
                mean[j] += double(of_gradient) * (d - mean[j]);
                square[j] = double(decay) * square[j] + double(of_square) * d * d;
                weight[j] -= rule == 0 ? rate * d / std::sqrt(square[j] - mean[j] * mean[j] + epsilon)
                                       : rate * mean[j] / (std::sqrt(square[j]) / root + epsilon);
            }
            const std::string name = (rule == 0 ? "RMSProp, " : "Adam, ") + std::to_string(counts[i]) + " weights";
            compare(name, weights[i], weight);
            compare("means of " + name, means[i], mean);
            compare("mean squares of " + name, squares[i], square);
        }
        compare("norm", Exact{norm(gradients_at.data(), counts, 4)}, {std::sqrt(sum)}, 1e-6);
    }
}

// Rings of 3 environments, frames of 5 bytes, stacks of 4: each frame is the newest but for those before an episode.
static void check_stacks() {
    constexpr int64_t kSize = 21, kEnvs = 3, kStack = 4, kBytes = 5;
    const std::vector<uint8_t> frames = drawn_bytes(kSize * kBytes);
    std::vector<uint8_t> starts(kSize, 0), found(kSize * kStack * kBytes);
    for (const size_t start : {0, 4, 7, 20}) starts[start] = 1;
    std::vector<int64_t> at(kSize);
    for (int64_t i = 0; i < kSize; ++i) at[size_t(i)] = i;
    gather_stacks(frames.data(), starts.data(), kSize, kEnvs, kStack, kBytes, at.data(), kSize, found.data());
    Exact expected(found.size());
    for (int64_t i = 0; i < kSize; ++i)
        for (int64_t place = kStack - 1, from = i; place >= 0; --place, from = (from - kEnvs + kSize) % kSize) {
            for (int64_t byte = 0; byte < kBytes; ++byte)
                expected[size_t((i * kStack + place) * kBytes + byte)] = frames[size_t(from * kBytes + byte)];
            if (starts[size_t(from)]) break;
        }
    compare("stacks", found, expected, 0);
    const int64_t outside = kSize;
    if (gather_stacks(frames.data(), starts.data(), kSize, kEnvs, kStack, kBytes, &outside, 1, found.data()))
        ++failures, std::puts("stacks: a frame outside the ring was found");
}

// A tree of `kLeaves` priorities, whose sums and minima are compared with plain ones.
class Tree {
  public:
    static constexpr int64_t kFanOut = 8, kLeaves = 512, kLevels = 4;

    Tree() {
        for (int64_t size = kLeaves; size > 0; size /= kFanOut) {
            sums.emplace_back(size, 0.0);
            minima.emplace_back(size, std::numeric_limits<double>::infinity());
        }
        for (size_t level = 0; level < sums.size(); ++level)
            sums_at.push_back(sums[level].data()), minima_at.push_back(minima[level].data());
    }
    // Whole priorities, of which sums are exact.
    void compare_levels(const std::string& name) const {
        Exact below = sums[0], least = sums[0];
        for (double& each : least) each = each == 0 ? 1e300 : each;
        for (size_t level = 1; level < sums.size(); ++level) {
            Exact sum(sums[level].size()), minimum(sums[level].size(), 1e300), found = minima[level];
            for (size_t i = 0; i < below.size(); ++i) {
                sum[i / kFanOut] += below[i];
                minimum[i / kFanOut] = std::min(minimum[i / kFanOut], least[i]);
            }
            for (double& each : found) each = std::min(each, 1e300);  // infinite where nothing has a priority
            compare("sums, " + name, sums[level], sum, 0);
            compare("minima, " + name, found, minimum, 0);
            below = sum, least = minimum;
        }
    }

    std::vector<Exact> sums, minima;
    std::vector<double*> sums_at, minima_at;
};

static void check_tree() {
    Tree tree;
    std::vector<int64_t> at;
    Exact priorities;
    for (int64_t i = 3; i < Tree::kLeaves; i += 1 + i % 4) at.push_back(i), priorities.push_back(double(i * 7 % 13));
    const auto count = int64_t(at.size());
    set_priorities(tree.sums_at.data(), tree.minima_at.data(), Tree::kLevels, Tree::kFanOut, Tree::kLeaves, at.data(),
                   priorities.data(), count);
    Exact expected(Tree::kLeaves);
    for (size_t i = 0; i < at.size(); ++i) expected[size_t(at[i])] = priorities[i];
    compare("priorities", tree.sums[0], expected, 0);
    tree.compare_levels("set");

    const double total = tree.sums.back()[0];
    Exact masses, places;
    for (double mass = 0.25; mass < total; mass += 3.5) {
        double left = mass;
        size_t leaf = 0;
        while (left >= expected[leaf]) left -= expected[leaf++];
        masses.push_back(mass), places.push_back(double(leaf));
    }
    std::vector<int64_t> found(masses.size());
    find_indices(tree.sums_at.data(), Tree::kLevels, Tree::kFanOut, masses.data(), int64_t(masses.size()),
                 found.data());
    compare("found", found, places, 0);
    const double beyond = total * 2;  // rounding may draw it: the last with priority
    find_indices(tree.sums_at.data(), Tree::kLevels, Tree::kFanOut, &beyond, 1, found.data());
    if (expected[size_t(found[0])] == 0) ++failures, std::puts("found: an index without priority");

    constexpr int64_t kRows = 2, kStrata = 8;
    const Exact units = {0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 0.5, 0.25, 0.75};
    std::vector<int64_t> drawn_at(kRows * kStrata), again(drawn_at.size());
    Numbers weights(drawn_at.size());
    draw_indices(tree.sums_at.data(), tree.minima_at.data(), Tree::kLevels, Tree::kFanOut, units.data(), kRows,
                 kStrata, -0.5, drawn_at.data(), weights.data());
    Exact mass(units.size()), of_weight;
    for (size_t i = 0; i < units.size(); ++i) mass[i] = (double(i % kStrata) + units[i]) * (total / kStrata);
    find_indices(tree.sums_at.data(), Tree::kLevels, Tree::kFanOut, mass.data(), int64_t(mass.size()), again.data());
    compare("drawn", drawn_at, Exact(again.begin(), again.end()), 0);
    for (const int64_t index : drawn_at)
        of_weight.push_back(std::pow(expected[size_t(index)] / tree.minima.back()[0], -0.5));
    compare("weights", weights, of_weight, 1e-6);

    // the larger of two errors counts; NaN and what has no priority change nothing
    const int64_t drawn_again[] = {at[1], at[1], at[2], at[3], 0};
    const float errors[] = {2, 5, NAN, 0, 9};
    double highest = 1;
    set_by_errors(tree.sums_at.data(), tree.minima_at.data(), Tree::kLevels, Tree::kFanOut, Tree::kLeaves,
                  drawn_again, errors, 5, 1, 2, &highest);
    expected[size_t(at[1])] = 36;
    if (expected[size_t(at[3])] > 0) expected[size_t(at[3])] = 1;
    compare("priorities by errors", tree.sums[0], expected, 1e-12);
    compare("highest priority", Exact{highest}, {36}, 1e-12);
    tree.compare_levels("set by errors");
    const int64_t outside = Tree::kLeaves;
    const double one = 1;
    if (set_priorities(tree.sums_at.data(), tree.minima_at.data(), Tree::kLevels, Tree::kFanOut, Tree::kLeaves,
                       &outside, &one, 1))
        ++failures, std::puts("priorities: one outside the tree was set");
}

void check_portable() {
    check_optimizers();
    check_stacks();
    check_tree();
}
