// Which patches of an image are found to be equal.
#define VECTOR_NUMBERS 4  // checks are compiled for any processor
#include "../../../atari_dqn/fast/cpu/patch_groups.hpp"
#include "checks.hpp"

// Whether the patches of two pixels of the output are equal, value by value, in an image with its zeros.
template <class Value>
static bool are_equal(const Shape& shape, const std::vector<Value>& image, size_t a, size_t b) {
    for (size_t high = 0; high < shape.kernel_height; ++high)
        for (size_t i = 0; i < shape.kernel_row(); ++i)
            if (image[shape.patch(a) + high * shape.pitch() + i] != image[shape.patch(b) + high * shape.pitch() + i])
                return false;
    return true;
}

// The first pixel of each pixel's group.
template <class Value>
static std::vector<size_t> expected_firsts(const Shape& shape, const std::vector<Value>& image) {
    const size_t width = shape.out_width();
    std::vector<size_t> firsts;
    for (size_t pixel = 0; pixel < shape.pixels(); ++pixel) {
        if (pixel % width > 0 && are_equal(shape, image, pixel, pixel - 1))
            firsts.push_back(firsts[pixel - 1]);
        else if (pixel >= width && are_equal(shape, image, pixel, pixel - width))
            firsts.push_back(firsts[pixel - width]);
        else
            firsts.push_back(pixel);
    }
    return firsts;
}

static void check_groups(const std::string& name, const Shape& shape, const PatchGroups& groups,
                         const std::vector<size_t>& firsts) {
    Exact expected, expected_places;
    for (size_t pixel = 0; pixel < firsts.size(); ++pixel)
        if (firsts[pixel] == pixel)
            expected.push_back(double(pixel)), expected_places.push_back(double(shape.patch(pixel)));
    Numbers found, found_places, of_pixels(firsts.size());
    for (size_t group = 0; group < groups.count(); ++group) {
        found.push_back(float(groups.first_pixel(group))), found_places.push_back(float(groups.place(group)));
        of_pixels[groups.first_pixel(group)] = found.back();
    }
    compare("first pixels of groups, " + name, found, expected, 0);
    compare("where their patches begin, " + name, found_places, expected_places, 0);
    groups.spread(of_pixels.data(), 1);
    compare("the group of each pixel, " + name, of_pixels, Exact(firsts.begin(), firsts.end()), 0);
}

// Two layers on one image: the second reads the first pixels of the first one's groups in place of what becomes of
// them.
static void check_image(std::string name, const Convolution (&layers)[2], const std::vector<uint8_t>& bytes) {
    const Shape first(&layers[0].batch), second(&layers[1].batch);
    name += ", " + std::to_string(layers[0].height) + " × " + std::to_string(layers[0].width) + " pixels";
    std::vector<uint8_t> image(first.padded());
    add_zeros(first, bytes.data(), image.data());
    PatchGroups groups, later;
    groups.find(first, image.data(), first.channels);
    const std::vector<size_t> firsts = expected_firsts(first, image);
    check_groups(name, first, groups, firsts);

    later.find_after(groups, second);
    std::vector<size_t> values, padded(second.padded());
    for (const size_t pixel : firsts)
        for (size_t channel = 0; channel < second.channels; ++channel) values.push_back(pixel + 1);
    add_zeros(second, values.data(), padded.data());
    check_groups(name + ", second layer", second, later, expected_firsts(second, padded));
}

void check_patch_groups() {
    const Convolution stacks[][2] = {
        {{1, 84, 84, 4, 8, 8, 4, 0, 0, 0, 0, 32}, {1, 20, 20, 32, 4, 4, 2, 0, 0, 0, 0, 64}},
        {{1, 84, 84, 4, 8, 8, 4, 2, 2, 2, 2, 32}, {1, 21, 21, 32, 4, 4, 2, 1, 2, 1, 2, 64}},
        {{1, 84, 84, 4, 5, 5, 5, 0, 0, 0, 0, 32}, {1, 16, 16, 32, 5, 5, 5, 0, 0, 0, 0, 64}},
        {{1, 20, 13, 2, 4, 4, 2, 0, 0, 0, 0, 32}, {1, 9, 5, 32, 3, 3, 1, 1, 1, 1, 1, 32}},
        {{1, 20, 20, 1, 8, 8, 1, 0, 0, 0, 0, 32}, {1, 13, 13, 32, 2, 2, 3, 0, 0, 0, 0, 32}},
    };
    for (const auto& layers : stacks) {
        check_image("black", layers, std::vector<uint8_t>(layers[0].in()));
        check_image("one colour", layers, std::vector<uint8_t>(layers[0].in(), 7));
        check_image("noise", layers, drawn_bytes(layers[0].in()));
        check_image("areas of one colour", layers, drawn_areas(layers[0]));
    }
}
