// BPF programs in the kernel, with their maps. gpr carries them as a program that loads them, which
// the build makes (make_loader.cc): so the kernel finds its own types for them, instead of libbpf,
// which first has to read all types of the kernel.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace gpr {

// Names are in the order in which the loader numbers maps and programs.
struct BpfImage {
    std::span<const unsigned char> data, instructions;
    std::span<const char*const> maps, programs;
};

class LoadedPrograms {
public:
    // Needs CAP_BPF, CAP_PERFMON and a kernel with BTF; takes some 10 ms.
    static Result<LoadedPrograms> load(const BpfImage& image);

    // The descriptor of the map or program of this name, which is one of the image; still ours.
    [[nodiscard]] int map(std::string_view name) const;
    [[nodiscard]] int program(std::string_view name) const;
    // Lets the program, one for a trace point, run from now on, until the descriptor is closed.
    [[nodiscard]] Result<Fd> attach(std::string_view name) const;

private:
    explicit LoadedPrograms(const BpfImage& image) : image_(&image) {}

    const BpfImage* image_;
    std::vector<Fd> maps_, programs_;  // as in the image
};

}  // namespace gpr
