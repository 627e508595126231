// The kernel's own structures, as its BTF describes them, in words: {st_size=12, ...}.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

struct btf;
struct btf_type;

namespace gpr {

class KernelTypes {
public:
    // Of the running kernel.
    static Result<KernelTypes> load();

    // nullopt: there is no such type, or it is none whose content can be shown. type: "struct
    // stat", "int".
    [[nodiscard]] std::optional<size_t> size_of(std::string_view type) const;
    // As many members as `bytes` has. whole: also members that are zero.
    [[nodiscard]] std::string text_of(std::string_view type, std::string_view bytes,
                                      bool whole) const;

private:
    explicit KernelTypes(btf* types);
    [[nodiscard]] int find(std::string_view type) const;
    [[nodiscard]] std::string value(unsigned id, std::string_view bytes, bool whole,
                                    unsigned depth) const;
    [[nodiscard]] std::string members(const btf_type& type, std::string_view bytes, bool whole,
                                      unsigned depth) const;
    [[nodiscard]] std::string elements(const btf_type& type, std::string_view bytes, bool whole,
                                       unsigned depth) const;

    std::shared_ptr<btf> types_;
};

// A string as C has it, in quotes; cut: with dots behind it.
std::string quoted(std::string_view bytes, bool is_cut);

}  // namespace gpr
