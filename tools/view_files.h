// The files of the page of `gpr view`, from tools/view.
#pragma once

#include <span>
#include <string_view>

namespace gpr {

struct ViewFile {
    std::string_view name, type, text;
};

// The first one is the page itself.
std::span<const ViewFile> view_files();

}  // namespace gpr
