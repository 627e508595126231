// The code and the variables of a process by their names, from its list of mappings, as a session
// tells it, and the files of this host.
#pragma once

#include <elfutils/libdwfl.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/result.h"

namespace gpr {

struct CallFrame {
    uint64_t instruction = 0;
    std::string symbol;  // with what it is beyond; empty: unknown
    std::string file;    // of the code
    std::string source;  // FILE:LINE; empty: unknown
};

// Variables of a file, as its table of symbols has them.
struct ModuleVariables {
    struct Variable {
        uint64_t begin = 0, end = 0;
        const char* name = "";  // the table's
    };
    std::vector<Variable> variables;  // by `begin`
    uint64_t longest = 0;             // in bytes
};

class ProcessSymbols {
public:
    // Becomes the user whose files will be read, for good, if this process is root's: the files'
    // content is their choice. To be called before of().
    static Result<> read_files_as(uid_t user);
    static Result<ProcessSymbols> of(const nlohmann::json& mappings);

    // is_call: a call that has not returned yet, so the instruction is the one after it.
    [[nodiscard]] CallFrame code_at(uint64_t instruction, bool is_call) const;
    // What is mapped there; empty: no program or library.
    [[nodiscard]] std::string file_at(uint64_t address) const;
    // The calls in which a thread is, innermost first, at most 64; dwfl_attach_state() has been
    // called, and says what the thread's registers and memory are. Empty: nothing is known of it.
    [[nodiscard]] std::vector<CallFrame> frames_of(pid_t tid) const;
    // Variables that lie there, or in part.
    [[nodiscard]] std::vector<std::string> variables_in(Range range) const;
    [[nodiscard]] Dwfl* dwfl() const { return dwfl_.get(); }

private:
    struct EndDwfl {
        void operator()(Dwfl* dwfl) const { dwfl_end(dwfl); }
    };
    explicit ProcessSymbols(std::unique_ptr<Dwfl, EndDwfl> dwfl) : dwfl_(std::move(dwfl)) {}

    std::unique_ptr<Dwfl, EndDwfl> dwfl_;
    mutable std::optional<std::vector<ModuleVariables>> variables_;  // once asked for
};

}  // namespace gpr
