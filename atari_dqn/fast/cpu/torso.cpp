// A stack of convolutions, each behind a ReLU, of images of bytes or floats: a torso, forward and backward.
//
// An image goes through all layers in one core's cache. What comes out lies channel by channel, as the weights
// of a fully connected layer have it.
#include <deque>
#include <vector>

#include "calls.hpp"
#include "convolution.hpp"
#include "images.hpp"

namespace {

// The layers' shapes, and where each one's weights and biases begin in one array of all.
struct Stack {
    std::vector<Shape> layers;
    std::vector<size_t> begins{0};

    Stack(const std::int64_t* numbers, size_t count) {
        for (size_t i = 0; i < count; ++i, numbers += Shape::kNumbers) {
            layers.emplace_back(numbers);
            begins.push_back(begins.back() + layers[i].filters * (layers[i].kernel() + 1));
        }
    }
    // Room for the panels of each layer from `from` on.
    template <class Unit>
    std::vector<word*> panels(Scratch<word>& scratch, size_t from) const {
        std::vector<size_t> at(size() + 1, 0);
        for (size_t i = 0; i < size(); ++i)
            at[i + 1] = at[i] + (i < from ? 0 : layers[i].filters * layers[i].kernel() / Unit::Format::kPerWord);
        word* room = scratch.of(at.back());
        std::vector<word*> panels;
        for (size_t i = 0; i < size(); ++i) panels.push_back(room + at[i]);
        return panels;
    }
    const Shape& first() const { return layers.front(); }
    const Shape& last() const { return layers.back(); }
    size_t size() const { return layers.size(); }
};

// The groups of equal patches in images, layer by layer.
class GroupsOfStack {
  public:
    // Finds those of an image, as `with_image` lays it out, and keeps them in a slot. Floats are not compared: they are four
    // times as many bytes, and on screens that repeat little the search cost more than it saved.
    template <class Value>
    void find(const Stack& stack, const Value* image, size_t slot) {
        if constexpr (sizeof(Value) > 1) return separate(stack, slot);
        first_of(stack, slot).find(stack.first(), image, stack.first().channels);
        find_later(stack, slot);
    }
    // Makes a group of each patch.
    void separate(const Stack& stack, size_t slot) {
        first_of(stack, slot).separate(stack.first());
        find_later(stack, slot);
    }
    const PatchGroups& at(size_t slot, size_t layer) const { return kept_[slot * layers_ + layer]; }

  private:
    PatchGroups& first_of(const Stack& stack, size_t slot) {
        layers_ = stack.size();
        if (kept_.size() < (slot + 1) * layers_) kept_.resize((slot + 1) * layers_);
        return kept_[slot * layers_];
    }
    void find_later(const Stack& stack, size_t slot) {
        for (size_t layer = 1; layer < layers_; ++layer)
            kept_[slot * layers_ + layer].find_after(at(slot, layer - 1), stack.layers[layer]);
    }

    size_t layers_ = 0;
    std::deque<PatchGroups> kept_;  // which does not move what is in it when it grows
};

template <class Unit>
struct StackMemory {
    using value = typename Unit::value;
    ImageMemory images;
    GroupsOfStack groups;
    Scratch<value> converted, padded, flow[2];
    Scratch<word> panels;
    Scratch<float> partial;
};

// Writes an image with its zeros in a unit's format.
template <class Unit>
void convert(const Shape& shape, const auto* image, typename Unit::value* __restrict to) {
    for (size_t i = 0; i < shape.padded(); ++i) to[i] = Unit::Format::of(image[i]);
}

// Finds the groups of equal patches in image number `image`, and keeps them in a slot.
template <class Unit>
void find_groups(const Stack& stack, const Images& images, size_t image, StackMemory<Unit>& memory, size_t slot) {
    if (images.are_fp32) return memory.groups.separate(stack, slot);
    with_image(stack.first(), images, image, memory.images,
               [&](const auto* pixels) { memory.groups.find(stack, pixels, slot); });
}

// What a stack makes of one image; `parts` of each layer are shared among threads.
template <class Unit>
class Pass {
    using value = typename Unit::value;

  public:
    Pass(const Stack& stack, StackMemory<Unit>& memory, size_t parts) : stack_(stack), memory_(memory), parts_(parts) {
        for (const Shape& shape : stack.layers) between_ = std::max(between_, shape.out());
    }

    void image(size_t image, const Images& images, word* const* panels, const float* const* biases,
               void* const* outputs, value* encoded) {
        const size_t last = stack_.size() - 1;
        value* converted = memory_.converted.of(stack_.first().padded());
        with_image(stack_.first(), images, image, memory_.images, [&](const auto* pixels) {
            convert<Unit>(stack_.first(), pixels, converted);
            if constexpr (Unit::kTakesRows) memory_.groups.find(stack_, pixels, 0);
        });
        const value* in = converted;
        for (size_t i = 0; i <= last; ++i) {
            const Shape& shape = stack_.layers[i];
            if (i > 0) in = with_zeros(shape, in, memory_.padded);
            value* y = memory_.flow[i % 2].of(between_);
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
            const PatchGroups& groups = memory_.groups.at(0, layer);
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
    StackMemory<Unit>& memory_;
    const size_t parts_;
    size_t between_ = 0;
};

template <class Unit>
void encode(const Images& images, const Stack& stack, const void* const* weights, const float* const* biases,
            void* const* outputs, typename Unit::value* encoded) {
    using value = typename Unit::value;
    StackMemory<Unit>& shared = kept<StackMemory<Unit>>();
    const std::vector<word*> panels = stack.panels<Unit>(shared.panels, 0);
    const size_t batch = stack.first().batch;
    for (size_t i = 0; i < stack.size(); ++i) {
        const Shape& shape = stack.layers[i];
        for_each_piece(shape.filters / kSide, [&](size_t panel) {
            pack<Unit>(shape, static_cast<const value*>(weights[i]), panel * kSide, panels[i]);
        });
    }
    const size_t parts = batch < threads() ? threads() : 1;  // of a layer; with one, threads share the images
    const auto run = [&](size_t image) {
        Pass<Unit>(stack, kept<StackMemory<Unit>>(), parts)
            .image(image, images, panels.data(), biases, outputs, encoded);
    };
    if (parts == 1) return for_each_piece(batch, run);
    for (size_t image = 0; image < batch; ++image) run(image);
}

// The upstream gradient of some images, pixel by pixel, where the last layer's ReLU let `encoded` through.
template <class Format>
void let_through(const Shape& shape, size_t images, const typename Format::value* encoded,
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

// What a stack's gradients are made of: `outputs` of all layers but the last, `encoded` of the last, and `panels` of weights.
template <class Unit>
struct Upstream {
    using value = typename Unit::value;
    Images images;
    const void* const* outputs;
    const value *encoded, *upstream;
    const std::vector<word*>& panels;
};

// The gradients that `images` images from `first` on give, into `partial`: of each layer weights, then biases.
template <class Unit>
void add_chunk(const Stack& stack, const Upstream<Unit>& of, size_t first, size_t images, float* partial) {
    using Format = typename Unit::Format;
    using value = typename Unit::value;
    StackMemory<Unit>& memory = kept<StackMemory<Unit>>();
    const size_t last = stack.size() - 1;
    size_t between = stack.last().out();
    for (size_t i = 1; i <= last; ++i) between = std::max(between, stack.layers[i].image());
    value* flow = memory.flow[0].of(images * between);
    value* next = memory.flow[1].of(images * between);
    const size_t begin = first * stack.last().out();
    let_through<Format>(stack.last(), images, of.encoded + begin, of.upstream + begin, flow);
    if constexpr (Unit::kTakesRows)
        for (size_t image = 0; image < images; ++image) find_groups(stack, of.images, first + image, memory, image);
    for (size_t i = last; i > 0; --i) {
        const Shape& shape = stack.layers[i];
        const value* x = static_cast<const value*>(of.outputs[i - 1]) + first * shape.image();
        const value* y = i < last ? static_cast<const value*>(of.outputs[i]) + first * shape.out() : nullptr;
        Backward<Unit> backward(shape, x, images);
        backward.take(y, flow);
        backward.of_x(of.panels[i], next);
        if constexpr (Unit::kTakesRows)
            backward.merge([&](size_t image) -> const PatchGroups& { return memory.groups.at(image, i); });
        float* to = partial + stack.begins[i];
        backward.of_weight(to, to + shape.filters * shape.kernel(), false);
        std::swap(flow, next);
    }
    // the first layer's images are large: where sums may go on from one to the next, each stays in a core's cache
    const Shape& shape = stack.first();
    const size_t at_once = Unit::kTakesRows ? 1 : images;
    value* in = memory.converted.of(at_once * shape.padded());
    for (size_t done = 0; done < images; done += at_once) {
        for (size_t i = 0; i < at_once; ++i)
            with_image(shape, of.images, first + done + i, memory.images,
                       [&](const auto* pixels) { convert<Unit>(shape, pixels, in + i * shape.padded()); });
        const value* y = last ? static_cast<const value*>(of.outputs[0]) + (first + done) * shape.out() : nullptr;
        Backward<Unit> backward(shape, in, at_once, true);
        backward.take(y, flow + done * shape.out());
        if constexpr (Unit::kTakesRows)
            backward.merge([&](size_t image) -> const PatchGroups& { return memory.groups.at(done + image, 0); });
        backward.of_weight(partial, partial + shape.filters * shape.kernel(), done > 0);
    }
}

template <class Unit>
void encode_backward(const Images& images, const Stack& stack, const void* const* weights, const void* const* outputs,
                     const typename Unit::value* encoded, const typename Unit::value* upstream,
                     float* const* of_weights, float* const* of_biases) {
    using value = typename Unit::value;
    const size_t batch = stack.first().batch, chunks = (batch + kChunk - 1) / kChunk, size = stack.begins.back();
    const std::vector<word*> panels = stack.panels<Unit>(kept<StackMemory<Unit>>().panels, 1);
    for (size_t i = 1; i < stack.size(); ++i)
        pack_transposed<Unit>(stack.layers[i], static_cast<const value*>(weights[i]), panels[i]);
    float* partial = kept<StackMemory<Unit>>().partial.of(chunks * size);
    const Upstream<Unit> of{images, outputs, encoded, upstream, panels};
    for_each_piece(chunks, [&](size_t chunk) {
        add_chunk(stack, of, chunk * kChunk, std::min(kChunk, batch - chunk * kChunk), partial + chunk * size);
    });
    add_up(partial, chunks, size);
    for (size_t i = 0; i < stack.size(); ++i) {
        const Shape& shape = stack.layers[i];
        const float* from = partial + stack.begins[i];
        copy_gradient<Unit>(shape, from, of_weights[i]);
        std::memcpy(of_biases[i], from + shape.filters * shape.kernel(), shape.filters * sizeof(float));
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
                                const void* encoded, const void* upstream, float* const* of_weights,
                                float* const* of_biases) {
    const Images images{pixels, are_fp32 != 0, in_planes != 0};
    with_unit(unit, [&](auto chosen) {
        using value = typename decltype(chosen)::value;
        encode_backward<decltype(chosen)>(images, Stack(shapes, layers), weights, outputs,
                                          static_cast<const value*>(encoded), static_cast<const value*>(upstream),
                                          of_weights, of_biases);
    });
}
