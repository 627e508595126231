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
    GdbThreadLocals(Debuggee& debuggee, const GdbThreads& threads)
        : debuggee_(debuggee), threads_(threads) {}

    // what: behind "qSymbol:". gdb offers to look up symbols, or has looked one up. Asks for the
    // next one.
    std::string answer_symbol(std::string_view what);
    // what: "thread,offset,address of the module's link_map".
    Task<std::string> answer_address(std::string what);
    // Another program has begun.
    void forget() { symbols_.clear(); }

private:
    // How the C library describes a field: nptl_db in glibc's sources.
    struct Field {
        uint32_t bits = 0, count = 0, offset = 0;
    };
    Task<std::optional<Field>> field(const char* name);
    Task<std::optional<uint64_t>> word(uint64_t at);
    Task<std::optional<uint64_t>> block_of(uint64_t thread_pointer, uint64_t link_map);

    Debuggee& debuggee_;
    const GdbThreads& threads_;
    std::map<std::string, Address> symbols_;  // 0: gdb knows no such symbol
};

}  // namespace gpr::debug
