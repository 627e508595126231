// Turns a BPF object into the program that loads it (libbpf calls it a light skeleton), as C++:
// make_loader OBJECT NAME OUT.cc OUT.h. What is made is `const BpfImage NAME`.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <span>
#include <string>
#include <vector>

namespace {

void write_bytes(std::ostream& out, const char* name, std::span<const uint8_t> bytes) {
    out << "alignas(8) const unsigned char " << name << "[] = {";
    for (const uint8_t byte : bytes) out << unsigned{byte} << ',';
    out << "};\n";
}

void write_names(std::ostream& out, const char* what, const std::vector<std::string>& names) {
    out << "const char* const " << what << "[] = {";
    for (const std::string& name : names) out << '"' << name << "\",";
    out << "};\n";
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 5) {
        std::fprintf(stderr, "usage: make_loader OBJECT NAME OUT.cc OUT.h\n");
        return 2;
    }
    const std::string name = arguments[2];
    bpf_object* object = bpf_object__open_file(arguments[1], nullptr);
    LIBBPF_OPTS(gen_loader_opts, loader);
    // Nothing is loaded now: what it would take is recorded.
    if (!object || bpf_object__gen_loader(object, &loader) != 0 || bpf_object__load(object) != 0) {
        std::fprintf(stderr, "make_loader: libbpf cannot turn %s into a loader\n", arguments[1]);
        return 1;
    }
    std::vector<std::string> maps, programs;
    bpf_map* map = nullptr;
    bpf_object__for_each_map(map, object) maps.emplace_back(bpf_map__name(map));
    bpf_program* program = nullptr;
    bpf_object__for_each_program(program, object) {
        programs.emplace_back(bpf_program__name(program));
    }

    std::ofstream code(arguments[3]), header(arguments[4]);
    header << "#pragma once\n\n#include \"bpf/loaded_programs.h\"\n\nnamespace gpr {\n\n"
           << "extern const BpfImage " << name << ";\n\n}  // namespace gpr\n";
    code << "#include " << std::filesystem::path(arguments[4]).filename() << "\n\nnamespace gpr {\n"
         << "namespace {\n\n";
    const auto bytes_of = [](const char* at, uint32_t size) {
        return std::span(reinterpret_cast<const uint8_t*>(at), size);
    };
    write_bytes(code, "data", bytes_of(loader.data, loader.data_sz));
    write_bytes(code, "instructions", bytes_of(loader.insns, loader.insns_sz));
    write_names(code, "maps", maps);
    write_names(code, "programs", programs);
    code << "\n}  // namespace\n\nconst BpfImage " << name
         << "{data, instructions, maps, programs};\n\n}  // namespace gpr\n";
    bpf_object__close(object);
    return code.good() && header.good() ? 0 : 1;
}
