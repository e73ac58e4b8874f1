// The input images of a stack of convolutions and their conversion to padded channels-last images.
#pragma once

#include <utility>

#include "shape.hpp"

namespace {

// Images of fp32 or of bytes, in planes (NCHW) or channels-last (NHWC).
struct Images {
    const void* pixels;
    bool are_fp32, in_planes;
};

typedef std::uint8_t bytes __attribute__((vector_size(16)));

inline bytes load_bytes(const void* at) {
    bytes x;
    std::memcpy(&x, at, sizeof x);
    return x;
}

// Interleaves elements of `kBytes` bytes of the first (`half` 0) or second halves of two vectors: a0 b0 a1 b1 …
template <size_t kBytes, size_t... i>
bytes interleaved(bytes a, bytes b, size_t half, std::index_sequence<i...>) {
    constexpr auto from = [](size_t at, size_t first) {
        return first + at / (2 * kBytes) * kBytes + at % kBytes + at / kBytes % 2 * sizeof(bytes);
    };
    return half == 0 ? shuffled(a, b, std::index_sequence<from(i, 0)...>())
                     : shuffled(a, b, std::index_sequence<from(i, sizeof(bytes) / 2)...>());
}

template <size_t kBytes>
bytes interleaved(bytes a, bytes b, size_t half) {
    return interleaved<kBytes>(a, b, half, std::make_index_sequence<sizeof(bytes)>());
}

// Converts an image from planes to channels-last; returns `to`.
template <class Value>
const Value* channels_last(const Shape& shape, const Value* from, Value* to) {
    constexpr size_t kBytes = sizeof(Value), kValues = sizeof(bytes) / kBytes;
    const size_t pixels = shape.height * shape.width;
    size_t done = 0;
    if (shape.channels == 4)
        for (; done + kValues <= pixels; done += kValues) {
            const bytes a = load_bytes(from + done), b = load_bytes(from + pixels + done);
            const bytes c = load_bytes(from + 2 * pixels + done), d = load_bytes(from + 3 * pixels + done);
            for (size_t half = 0; half < 2; ++half) {
                const bytes ab = interleaved<kBytes>(a, b, half), cd = interleaved<kBytes>(c, d, half);
                for (size_t quarter = 0; quarter < 2; ++quarter) {
                    const bytes abcd = interleaved<2 * kBytes>(ab, cd, quarter);
                    std::memcpy(to + 4 * done + (2 * half + quarter) * kValues, &abcd, sizeof abcd);
                }
            }
        }
    for (; done < pixels; ++done)
        for (size_t channel = 0; channel < shape.channels; ++channel)
            to[done * shape.channels + channel] = from[channel * pixels + done];
    return to;
}

struct ImageWorkspace {
    template <class Value>
    struct Buffers {
        Scratch<Value> interleaved, padded;
    };

    Buffers<std::uint8_t> byte_buffers;
    Buffers<float> float_buffers;
};

// Calls `run` with image number `image`, channels-last and padded.
template <class Run>
void with_image(const Shape& shape, const Images& images, size_t image, ImageWorkspace& workspace, const Run& run) {
    const auto lay_out = [&](const auto* from, auto& buffers) {
        from += image * shape.image();
        if (images.in_planes) from = channels_last(shape, from, buffers.interleaved.get(shape.image()));
        run(with_zeros(shape, from, buffers.padded));
    };
    if (images.are_fp32)
        lay_out(static_cast<const float*>(images.pixels), workspace.float_buffers);
    else
        lay_out(static_cast<const std::uint8_t*>(images.pixels), workspace.byte_buffers);
}

}  // namespace
