// Where a thread has a thread-local variable: qGetTLSAddr. The C library describes its own
// structures for that, in symbols which gdb looks up for us (qSymbol).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/task.h"
#include "monitor/debug/debuggee.h"
#include "monitor/debug/gdb_threads.h"

namespace gpr::debug {

class GdbThreadLocals {
public:
    GdbThreadLocals(const GdbProcesses& processes, const GdbThreads& threads)
        : processes_(processes), threads_(threads) {}

    // what: behind "qSymbol:". gdb offers to look up symbols, or has looked one up. Asks for the
    // next one.
    std::string answer_symbol(std::string_view what);
    // what: "thread,offset,address of the module's link_map".
    Task<std::string> answer_address(std::string what);
    // Another program has begun in that process, or it is over.
    void forget(pid_t pid) { symbols_.erase(pid); }
    void inherit(pid_t parent, pid_t child) {
        if (const auto its = symbols_.find(parent); its != symbols_.end()) {
            symbols_[child] = its->second;
        }
    }

private:
    // How the C library describes a field: nptl_db in glibc's sources.
    struct Field {
        uint32_t bits = 0, count = 0, offset = 0;
    };
    using Symbols = std::map<std::string, Address>;  // 0: gdb knows no such symbol
    static Task<std::optional<Field>> field(DebuggeeMemory& memory, const Symbols& symbols,
                                            const char* name);
    static Task<std::optional<uint64_t>> word(DebuggeeMemory& memory, uint64_t at);
    static Task<std::optional<uint64_t>> block_of(DebuggeeMemory& memory, Symbols symbols,
                                                  uint64_t thread_pointer, uint64_t link_map);

    const GdbProcesses& processes_;
    const GdbThreads& threads_;
    std::map<pid_t, Symbols> symbols_;  // by process
};

}  // namespace gpr::debug
