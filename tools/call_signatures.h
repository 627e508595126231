// The types and names of the arguments of system calls, from data/call_signatures.txt.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpr {

struct Parameter {
    std::string type;  // "const char*", "umode_t"
    std::string name;

    [[nodiscard]] bool is_pointer() const { return type.ends_with('*'); }
    // What it points to, without const: "struct stat". Empty if it is no pointer.
    [[nodiscard]] std::string pointee() const;
};

// nullptr: nothing is known of a call of this name.
const std::vector<Parameter>* signature_of(std::string_view call);

}  // namespace gpr
