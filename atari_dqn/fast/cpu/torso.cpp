// A torso: a stack of convolutions with ReLUs on images of bytes or fp32, forward and backward.
//
// An image passes through all layers in the cache of one core. The output is in planes, the order in which the
// weights of the fully connected layer expect it.
#include <deque>
#include <vector>

#include "calls.hpp"
#include "convolution.hpp"
#include "images.hpp"

namespace {

// The shapes of the layers, and the offset of each layer's weights and biases in one array of all gradients.
struct Stack {
    std::vector<Shape> layers;
    std::vector<size_t> offsets{0};

    Stack(const std::int64_t* numbers, size_t count) {
        for (size_t i = 0; i < count; ++i, numbers += Shape::kNumbers) {
            layers.emplace_back(numbers);
            offsets.push_back(offsets.back() + layers[i].filters * (layers[i].kernel() + 1));
        }
    }
    // Returns space for the panels of the layers from `from` on.
    template <class Unit>
    std::vector<word*> panels(Scratch<word>& scratch, size_t from) const {
        std::vector<size_t> at(size() + 1, 0);
        for (size_t i = 0; i < size(); ++i)
            at[i + 1] = at[i] + (i < from ? 0 : layers[i].filters * layers[i].kernel() / Unit::Format::kPerWord);
        word* room = scratch.get(at.back());
        std::vector<word*> panels;
        for (size_t i = 0; i < size(); ++i) panels.push_back(room + at[i]);
        return panels;
    }
    const Shape& first() const { return layers.front(); }
    const Shape& last() const { return layers.back(); }
    size_t size() const { return layers.size(); }
};

// The groups of equal patches in images, layer by layer.
class StackGroups {
  public:
    // Finds the groups of an image, as passed by `with_image`, and stores them in `slot`. Images of fp32 are not
    // searched: they are four times as large, and on screens with few repetitions the search cost more than it saved.
    template <class Value>
    void find(const Stack& stack, const Value* image, size_t slot) {
        if constexpr (sizeof(Value) > 1) return separate(stack, slot);
        first_layer(stack, slot).find(stack.first(), image, stack.first().channels);
        find_later(stack, slot);
    }
    // Puts each patch into a group of its own.
    void separate(const Stack& stack, size_t slot) {
        first_layer(stack, slot).separate(stack.first());
        find_later(stack, slot);
    }
    const PatchGroups& at(size_t slot, size_t layer) const { return groups_[slot * layers_ + layer]; }

  private:
    PatchGroups& first_layer(const Stack& stack, size_t slot) {
        layers_ = stack.size();
        if (groups_.size() < (slot + 1) * layers_) groups_.resize((slot + 1) * layers_);
        return groups_[slot * layers_];
    }
    void find_later(const Stack& stack, size_t slot) {
        for (size_t layer = 1; layer < layers_; ++layer)
            groups_[slot * layers_ + layer].find_after(at(slot, layer - 1), stack.layers[layer]);
    }

    size_t layers_ = 0;
    std::deque<PatchGroups> groups_;  // a deque does not move its elements when it grows
};

template <class Unit>
struct StackWorkspace {
    using value = typename Unit::value;
    ImageWorkspace images;
    StackGroups groups;
    Scratch<value> converted, padded, ping_pong[2];
    Scratch<word> panels;
    Scratch<float> partial;
};

// Converts a padded image to the format of a unit.
template <class Unit>
void convert(const Shape& shape, const auto* image, typename Unit::value* __restrict to) {
    for (size_t i = 0; i < shape.padded(); ++i) to[i] = Unit::Format::from(image[i]);
}

// Finds the groups of equal patches of image number `image` and stores them in `slot`.
template <class Unit>
void find_groups(const Stack& stack, const Images& images, size_t image, StackWorkspace<Unit>& workspace,
                 size_t slot) {
    if (images.are_fp32) return workspace.groups.separate(stack, slot);
    with_image(stack.first(), images, image, workspace.images,
               [&](const auto* pixels) { workspace.groups.find(stack, pixels, slot); });
}

// The forward pass of one image through a stack; each layer is split into `parts` that threads share.
template <class Unit>
class ForwardPass {
    using value = typename Unit::value;

  public:
    ForwardPass(const Stack& stack, StackWorkspace<Unit>& workspace, size_t parts)
        : stack_(stack), workspace_(workspace), parts_(parts) {
        for (const Shape& shape : stack.layers) max_output_ = std::max(max_output_, shape.out());
    }

    void encode_image(size_t image, const Images& images, word* const* panels, const float* const* biases,
                      void* const* outputs, value* encoded) {
        const size_t last = stack_.size() - 1;
        value* converted = workspace_.converted.get(stack_.first().padded());
        with_image(stack_.first(), images, image, workspace_.images, [&](const auto* pixels) {
            convert<Unit>(stack_.first(), pixels, converted);
            if constexpr (Unit::kTakesRows) workspace_.groups.find(stack_, pixels, 0);
        });
        const value* in = converted;
        for (size_t i = 0; i <= last; ++i) {
            const Shape& shape = stack_.layers[i];
            if (i > 0) in = with_zeros(shape, in, workspace_.padded);
            value* y = workspace_.ping_pong[i % 2].get(max_output_);
            if (outputs && i < last) y = static_cast<value*>(outputs[i]) + image * shape.out();
            convolve(i, in, panels[i], biases[i], y);
            in = y;
        }
        const size_t filters = stack_.last().filters, count = stack_.last().pixels();
        value* to = encoded + image * stack_.last().out();
        for (size_t filter = 0; filter < filters; ++filter)
            for (size_t pixel = 0; pixel < count; ++pixel) to[filter * count + pixel] = in[pixel * filters + filter];
    }

  private:
    void convolve(size_t layer, const value* in, const word* panels, const float* bias, value* y) {
        const Shape& shape = stack_.layers[layer];
        if constexpr (Unit::kTakesRows) {
            const PatchGroups& groups = workspace_.groups.at(0, layer);
            for_each_piece(parts_, [&](size_t part) {
                convolve_groups<Unit>(shape, groups, in, panels, bias, y, part, parts_);
            });
            groups.spread(y, shape.filters);
        } else {
            for_each_piece(parts_, [&](size_t part) {
                const typename Unit::Scope scope(blocks_of<Unit>(shape).pixels);
                convolve_image<Unit>(shape, in, panels, bias, y, part, parts_);
            });
        }
    }

    const Stack& stack_;
    StackWorkspace<Unit>& workspace_;
    const size_t parts_;
    size_t max_output_ = 0;
};

template <class Unit>
void encode(const Images& images, const Stack& stack, const void* const* weights, const float* const* biases,
            void* const* outputs, typename Unit::value* encoded) {
    using value = typename Unit::value;
    StackWorkspace<Unit>& shared = per_thread<StackWorkspace<Unit>>();
    const std::vector<word*> panels = stack.panels<Unit>(shared.panels, 0);
    const size_t batch = stack.first().batch;
    for (size_t i = 0; i < stack.size(); ++i) {
        const Shape& shape = stack.layers[i];
        for_each_piece(shape.filters / kLanes, [&](size_t panel) {
            pack_filters<Unit>(shape, static_cast<const value*>(weights[i]), panel * kLanes, panels[i]);
        });
    }
    // With fewer images than threads, the threads share the parts of each layer, else the images.
    const size_t parts = batch < threads() ? threads() : 1;
    const auto run = [&](size_t image) {
        ForwardPass<Unit>(stack, per_thread<StackWorkspace<Unit>>(), parts)
            .encode_image(image, images, panels.data(), biases, outputs, encoded);
    };
    if (parts == 1) return for_each_piece(batch, run);
    for (size_t image = 0; image < batch; ++image) run(image);
}

// The backward pass of the last ReLU, which also converts upstream gradients of images from planes to channels-last.
template <class Format>
void encoded_relu_backward(const Shape& shape, size_t images, const typename Format::value* encoded,
                           const typename Format::value* upstream, typename Format::value* to) {
    const size_t filters = shape.filters, count = shape.pixels();
    for (size_t i = 0; i < images; ++i, encoded += shape.out(), upstream += shape.out(), to += shape.out())
        for (size_t filter = 0; filter < filters; ++filter)
            for (size_t pixel = 0; pixel < count; ++pixel) {
                const size_t at = filter * count + pixel;
                to[pixel * filters + filter] =
                    Format::is_positive_or_nan(encoded[at]) ? upstream[at] : typename Format::value(0);
            }
}

// The inputs of a backward pass: `outputs` of all layers but the last, `encoded` of the last, packed weights.
template <class Unit>
struct BackwardInputs {
    using value = typename Unit::value;
    Images images;
    const void* const* outputs;
    const value *encoded, *upstream;
    const std::vector<word*>& panels;
};

// Computes the gradients of `images` images from `first` on into `partial`: layer by layer, weights, then biases.
template <class Unit>
void compute_chunk_gradients(const Stack& stack, const BackwardInputs<Unit>& inputs, size_t first, size_t images,
                             float* partial) {
    using Format = typename Unit::Format;
    using value = typename Unit::value;
    StackWorkspace<Unit>& workspace = per_thread<StackWorkspace<Unit>>();
    const size_t last = stack.size() - 1;
    size_t max_gradient = stack.last().out();
    for (size_t i = 1; i <= last; ++i) max_gradient = std::max(max_gradient, stack.layers[i].image());
    value* gradient = workspace.ping_pong[0].get(images * max_gradient);
    value* input_gradient = workspace.ping_pong[1].get(images * max_gradient);
    const size_t begin = first * stack.last().out();
    encoded_relu_backward<Format>(stack.last(), images, inputs.encoded + begin, inputs.upstream + begin, gradient);
    if constexpr (Unit::kTakesRows)
        for (size_t image = 0; image < images; ++image)
            find_groups(stack, inputs.images, first + image, workspace, image);
    for (size_t i = last; i > 0; --i) {
        const Shape& shape = stack.layers[i];
        const value* x = static_cast<const value*>(inputs.outputs[i - 1]) + first * shape.image();
        const value* y = i < last ? static_cast<const value*>(inputs.outputs[i]) + first * shape.out() : nullptr;
        Backward<Unit> backward(shape, x, images);
        backward.set_upstream(y, gradient);
        backward.compute_input_gradient(inputs.panels[i], input_gradient);
        if constexpr (Unit::kTakesRows)
            backward.merge_equal_patches(
                [&](size_t image) -> const PatchGroups& { return workspace.groups.at(image, i); });
        float* to = partial + stack.offsets[i];
        backward.compute_weight_gradient(to, to + shape.filters * shape.kernel(), false);
        std::swap(gradient, input_gradient);
    }
    // The first layer's images are large: units that can accumulate take one at a time, so that it stays in cache.
    const Shape& shape = stack.first();
    const size_t at_once = Unit::kTakesRows ? 1 : images;
    value* in = workspace.converted.get(at_once * shape.padded());
    for (size_t done = 0; done < images; done += at_once) {
        for (size_t i = 0; i < at_once; ++i)
            with_image(shape, inputs.images, first + done + i, workspace.images,
                       [&](const auto* pixels) { convert<Unit>(shape, pixels, in + i * shape.padded()); });
        const value* y = last ? static_cast<const value*>(inputs.outputs[0]) + (first + done) * shape.out() : nullptr;
        Backward<Unit> backward(shape, in, at_once, true);
        backward.set_upstream(y, gradient + done * shape.out());
        if constexpr (Unit::kTakesRows)
            backward.merge_equal_patches(
                [&](size_t image) -> const PatchGroups& { return workspace.groups.at(done + image, 0); });
        backward.compute_weight_gradient(partial, partial + shape.filters * shape.kernel(), done > 0);
    }
}

template <class Unit>
void encode_backward(const Images& images, const Stack& stack, const void* const* weights, const void* const* outputs,
                     const typename Unit::value* encoded, const typename Unit::value* upstream,
                     float* const* weight_gradients, float* const* bias_gradients) {
    using value = typename Unit::value;
    const size_t batch = stack.first().batch, chunks = (batch + kChunk - 1) / kChunk, size = stack.offsets.back();
    const std::vector<word*> panels = stack.panels<Unit>(per_thread<StackWorkspace<Unit>>().panels, 1);
    for (size_t i = 1; i < stack.size(); ++i)
        pack_transposed<Unit>(stack.layers[i], static_cast<const value*>(weights[i]), panels[i]);
    float* partial = per_thread<StackWorkspace<Unit>>().partial.get(chunks * size);
    const BackwardInputs<Unit> inputs{images, outputs, encoded, upstream, panels};
    for_each_piece(chunks, [&](size_t chunk) {
        compute_chunk_gradients(stack, inputs, chunk * kChunk, std::min(kChunk, batch - chunk * kChunk),
                                partial + chunk * size);
    });
    reduce_chunks(partial, chunks, size);
    for (size_t i = 0; i < stack.size(); ++i) {
        const Shape& shape = stack.layers[i];
        const float* from = partial + stack.offsets[i];
        unpack_weight_gradient<Unit>(shape, from, weight_gradients[i]);
        std::memcpy(bias_gradients[i], from + shape.filters * shape.kernel(), shape.filters * sizeof(float));
    }
}

}  // namespace

extern "C" void encode(int unit, const void* pixels, int are_fp32, int in_planes, const std::int64_t* shapes,
                       std::int64_t layers, const void* const* weights, const float* const* biases,
                       void* const* outputs, void* encoded) {
    const Images images{pixels, are_fp32 != 0, in_planes != 0};
    with_unit(unit, [&](auto chosen) {
        using value = typename decltype(chosen)::value;
        encode<decltype(chosen)>(images, Stack(shapes, layers), weights, biases, outputs,
                                 static_cast<value*>(encoded));
    });
}

extern "C" void encode_backward(int unit, const void* pixels, int are_fp32, int in_planes, const std::int64_t* shapes,
                                std::int64_t layers, const void* const* weights, const void* const* outputs,
                                const void* encoded, const void* upstream, float* const* weight_gradients,
                                float* const* bias_gradients) {
    const Images images{pixels, are_fp32 != 0, in_planes != 0};
    with_unit(unit, [&](auto chosen) {
        using value = typename decltype(chosen)::value;
        encode_backward<decltype(chosen)>(images, Stack(shapes, layers), weights, outputs,
                                          static_cast<const value*>(encoded), static_cast<const value*>(upstream),
                                          weight_gradients, bias_gradients);
    });
}
