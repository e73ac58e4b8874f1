// One convolution, forward and backward.
#include "convolution.hpp"

namespace {

template <class Unit>
void forward(const typename Unit::value* x, const Shape& shape, const typename Unit::value* weight, const float* bias,
             typename Unit::value* y) {
    using value = typename Unit::value;
    word* panels = kept<Memory<Unit>>().weights.of(shape.filters * shape.kernel() / Unit::Format::kPerWord);
    for (size_t filter = 0; filter < shape.filters; filter += kSide) pack<Unit>(shape, weight, filter, panels);
    for_each_piece(shape.batch, [&](size_t image) {
        const typename Unit::Scope scope(blocks_of<Unit>(shape).pixels);
        value* scratch = shape.pads() ? kept<Memory<Unit>>().images.of(shape.padded()) : nullptr;
        convolve_image<Unit>(shape, with_zeros(shape, x + image * shape.image(), scratch), panels, bias, false,
                             y + image * shape.out());
    });
}

template <class Unit>
void backward(const typename Unit::value* x, const Shape& shape, const typename Unit::value* weight,
              const typename Unit::value* upstream, float* of_weight, float* of_bias, typename Unit::value* of_x) {
    const size_t filters = shape.filters, kernel = shape.kernel(), chunks = (shape.batch + kChunk - 1) / kChunk;
    const size_t weights = filters * shape.gradient(), size = weights + filters;
    Memory<Unit>& memory = kept<Memory<Unit>>();
    float* partial = memory.partial.of(chunks * size);
    word* panels = memory.weights.of(filters * kernel / Unit::Format::kPerWord);
    if (of_x) pack_transposed<Unit>(shape, weight, panels);
    for_each_piece(chunks, [&](size_t chunk) {
        const size_t first = chunk * kChunk;
        Backward<Unit> backward(shape, x + first * shape.image(), std::min(kChunk, shape.batch - first));
        backward.take(nullptr, upstream + first * shape.out());
        backward.of_weight(partial + chunk * size, partial + chunk * size + weights);
        if (of_x) backward.of_x(panels, of_x + first * shape.image());
    });
    add_up(partial, chunks, size);
    copy_gradient(shape, partial, of_weight);
    std::memcpy(of_bias, partial + weights, filters * sizeof(float));
}

}  // namespace

// The convolution of `x` plus `bias`. `shape` as in Shape's constructor.
extern "C" void convolve(int unit, const void* x, const std::int64_t* shape, const void* weight, const float* bias,
                         void* y) {
    with_unit(unit, [&](auto chosen) {
        using value = typename decltype(chosen)::value;
        forward<decltype(chosen)>(static_cast<const value*>(x), Shape(shape), static_cast<const value*>(weight), bias,
                                  static_cast<value*>(y));
    });
}

// Its gradients; `of_x` may be null. Sums over the minibatch are made in the same order by any number of threads.
extern "C" void convolve_backward(int unit, const void* x, const std::int64_t* shape, const void* weight,
                                  const void* upstream, float* of_weight, float* of_bias, void* of_x) {
    with_unit(unit, [&](auto chosen) {
        using value = typename decltype(chosen)::value;
        backward<decltype(chosen)>(static_cast<const value*>(x), Shape(shape), static_cast<const value*>(weight),
                                   static_cast<const value*>(upstream), of_weight, of_bias, static_cast<value*>(of_x));
    });
}
