// Which patches of an image repeat those next to them.
#define VECTOR_NUMBERS 4
#include "../../../atari_dqn/fast/cpu/repeats.hpp"
#include "checks.hpp"

using Bytes = std::vector<uint8_t>;

// Whether the patches of two pixels of the output are equal, byte by byte.
static bool are_equal(const Shape& shape, const Bytes& image, size_t a, size_t b) {
    for (size_t high = 0; high < shape.kernel_height; ++high)
        for (size_t i = 0; i < shape.kernel_row(); ++i)
            if (image[shape.patch(a) + high * shape.pitch() + i] != image[shape.patch(b) + high * shape.pitch() + i])
                return false;
    return true;
}

static void check_image(const std::string& name, const Convolution& layer, const Bytes& image) {
    const Shape shape(&layer.batch);
    Repeats repeats;
    repeats.find(shape, image.data(), shape.channels);
    std::vector<size_t> firsts(shape.pixels());
    Exact expected, places;
    for (size_t pixel = 0; pixel < shape.pixels(); ++pixel) {
        firsts[pixel] = pixel;
        if (const size_t above = shape.out_width(); pixel >= above && are_equal(shape, image, pixel, pixel - above))
            firsts[pixel] = firsts[pixel - above];
        if (pixel % shape.out_width() > 0 && are_equal(shape, image, pixel, pixel - 1)) firsts[pixel] = firsts[pixel - 1];
        if (firsts[pixel] == pixel) expected.push_back(double(pixel)), places.push_back(double(shape.patch(pixel)));
    }
    Numbers found, found_places, of_pixels(shape.pixels());
    for (size_t i = 0; i < repeats.count(); ++i) {
        found.push_back(float(repeats.pixel(i))), found_places.push_back(float(repeats.place(i)));
        of_pixels[repeats.pixel(i)] = float(repeats.pixel(i));
    }
    compare("patches that differ, " + name, found, expected, 0);
    compare("where they begin, " + name, found_places, places, 0);
    repeats.spread(of_pixels.data(), 1);
    compare("whose patch each pixel has, " + name, of_pixels, Exact(firsts.begin(), firsts.end()), 0);
}

void check_repeats() {
    const std::vector<Convolution> layers = {
        {1, 84, 84, 4, 8, 8, 4, 0, 0, 0, 0, 32}, {1, 84, 84, 4, 5, 5, 5, 0, 0, 0, 0, 32},
        {1, 20, 13, 2, 4, 4, 2, 0, 0, 0, 0, 32}, {1, 20, 20, 1, 8, 8, 1, 0, 0, 0, 0, 32},
    };
    for (const Convolution& layer : layers) {
        const std::string name = std::to_string(layer.height) + " × " + std::to_string(layer.width) + " pixels";
        check_image("one colour, " + name, layer, Bytes(layer.in(), 7));
        check_image("noise, " + name, layer, drawn_bytes(layer.in()));
        check_image("areas of one colour, " + name, layer, drawn_areas(layer));
    }
}
