#include "bpf/loaded_programs.h"

#include <bpf/bpf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

/* It needs errno. */
#include <bpf/skel_internal.h>

namespace gpr {

namespace {

constexpr const char* cure = "needs CAP_BPF, CAP_PERFMON and a kernel with BTF";

size_t number_of(std::span<const char* const> names, std::string_view name) {
    const auto found =
        std::ranges::find(names, name, [](const char* n) { return std::string_view(n); });
    GPR_ASSERT(found != names.end());
    return static_cast<size_t>(found - names.begin());
}

}  // namespace

Result<LoadedPrograms> LoadedPrograms::load(const BpfImage& image) {
    // What the loader is told, and tells: the context, then each map, then each program.
    const size_t maps_at = sizeof(bpf_loader_ctx);
    const size_t programs_at = maps_at + image.maps.size() * sizeof(bpf_map_desc);
    const size_t size = programs_at + image.programs.size() * sizeof(bpf_prog_desc);
    std::vector<uint64_t> words((size + 7) / 8);
    auto* const bytes = reinterpret_cast<std::byte*>(words.data());
    auto* const context = reinterpret_cast<bpf_loader_ctx*>(bytes);
    context->sz = static_cast<uint32_t>(size);
    bpf_load_and_run_opts options{};
    options.ctx = context;
    options.data = image.data.data();
    options.data_sz = static_cast<uint32_t>(image.data.size());
    options.insns = image.instructions.data();
    options.insns_sz = static_cast<uint32_t>(image.instructions.size());
    if (int error = bpf_load_and_run(&options); error < 0) {
        return fail(-error, fmt::format("cannot load BPF programs ({})", cure));
    }
    LoadedPrograms loaded(image);
    const auto* maps = reinterpret_cast<const bpf_map_desc*>(bytes + maps_at);
    for (size_t i = 0; i < image.maps.size(); i++) loaded.maps_.emplace_back(maps[i].map_fd);
    const auto* programs = reinterpret_cast<const bpf_prog_desc*>(bytes + programs_at);
    for (size_t i = 0; i < image.programs.size(); i++) {
        loaded.programs_.emplace_back(programs[i].prog_fd);
    }
    return loaded;
}

int LoadedPrograms::map(std::string_view name) const {
    return maps_[number_of(image_->maps, name)].get();
}

int LoadedPrograms::program(std::string_view name) const {
    return programs_[number_of(image_->programs, name)].get();
}

Result<Fd> LoadedPrograms::attach(std::string_view name) const {
    Fd attached(bpf_raw_tracepoint_open(nullptr, program(name)));
    if (!attached) return fail(errno, fmt::format("cannot attach BPF programs ({})", cure));
    return attached;
}

}  // namespace gpr
