// A system call in words, as strace has them: openat(AT_FDCWD, "/etc", O_RDONLY) = 3.
#pragma once

#include <functional>
#include <string>

#include "tools/call_signatures.h"
#include "tools/kernel_types.h"
#include "tools/traced_call.h"

namespace gpr {

class CallText {
public:
    // What a descriptor refers to; empty: unknown.
    using FileName = std::function<std::string(uint64_t fd)>;

    // types: nullptr if the kernel's are not known. whole: every member of structures.
    // limit: bytes of strings.
    CallText(const KernelTypes* types, bool whole, size_t limit)
        : types_(types), whole_(whole), limit_(limit) {}

    // With the call's name, without what it returned.
    [[nodiscard]] std::string begin(const TracedCall& call, const FileName& file_name = {}) const;
    // What stands behind the equals sign.
    static std::string result(const TracedCall& call);

private:
    struct Place {
        const TracedCall& call;
        const std::string& name;
        unsigned index;
        const Parameter* parameter;  // nullptr: unknown
        const FileName& file_name;

        [[nodiscard]] uint64_t value() const { return call.args.at(index); }
    };
    [[nodiscard]] std::string argument(const Place& place) const;
    [[nodiscard]] std::string pointed(const Place& place) const;
    [[nodiscard]] std::string bytes_text(const Place& place, const TracedPart& part) const;
    [[nodiscard]] std::string cut(const TracedPart& part) const;
    [[nodiscard]] std::string one_structure(const std::string& type, const TracedPart& part) const;
    [[nodiscard]] std::string structures(const std::string& type, const TracedPart& part) const;

    const KernelTypes* types_;
    bool whole_;
    size_t limit_;
};

}  // namespace gpr
