#include "monitor/debug/gdb_thread_locals.h"

#include <fmt/format.h>

#include <array>

#include "monitor/debug/gdb_packets.h"

namespace gpr::debug {

namespace {

const char* const bad_packet = "E16";
// The field of the thread's descriptor that points to its table of blocks, ...
const char* const table_of_thread = "_thread_db_pthread_dtvp";
// ... the table's entries, the address in an entry, and the number of a module.
const char* const entries_of_table = "_thread_db_dtv_dtv";
const char* const address_in_entry = "_thread_db_dtv_t_pointer_val";
const char* const number_of_module = "_thread_db_link_map_l_tls_modid";
constexpr std::array wanted{table_of_thread, entries_of_table, address_in_entry, number_of_module};

constexpr uint64_t not_allocated = ~0ULL;

}  // namespace

std::string GdbThreadLocals::answer_symbol(std::string_view what) {
    const GdbProcesses::One* its = threads_.chosen_process();
    if (!its) return "OK";
    Symbols& symbols = symbols_[its->process->pid()];
    const auto value = to_number(take_until(what, ':'));
    if (const auto name = from_hex(what); name && !name->empty()) {
        const auto known =
            std::ranges::find_if(wanted, [&](const char* one) { return *name == one; });
        if (known != wanted.end()) symbols[*name] = {value.value_or(0)};
    } else {
        // Something has been loaded: what was not known may be now.
        std::erase_if(symbols, [](const auto& symbol) { return symbol.second.value == 0; });
    }
    for (const char* name : wanted) {
        if (!symbols.contains(name)) return "qSymbol:" + to_hex(std::string_view(name));
    }
    return "OK";
}

Task<std::optional<uint64_t>> GdbThreadLocals::word(DebuggeeMemory& memory, uint64_t at) {
    uint64_t value = 0;
    const auto bytes = std::as_writable_bytes(std::span(&value, 1));
    const size_t got = co_await memory.read({at}, bytes);
    if (got != sizeof value) co_return std::nullopt;
    co_return value;
}

Task<std::optional<GdbThreadLocals::Field>> GdbThreadLocals::field(DebuggeeMemory& memory,
                                                                   const Symbols& symbols,
                                                                   const char* name) {
    const auto symbol = symbols.find(name);
    if (symbol == symbols.end() || symbol->second.value == 0) co_return std::nullopt;
    Field described;
    const auto bytes = std::as_writable_bytes(std::span(&described, 1));
    const size_t got = co_await memory.read(symbol->second, bytes);
    if (got != sizeof described) co_return std::nullopt;
    co_return described;
}

// The module's block for that thread. nullopt: it is not known, or the thread has not used it yet.
Task<std::optional<uint64_t>> GdbThreadLocals::block_of(DebuggeeMemory& memory, Symbols symbols,
                                                        uint64_t thread_pointer,
                                                        uint64_t link_map) {
    const auto table_at = co_await field(memory, symbols, table_of_thread);
    const auto entries = co_await field(memory, symbols, entries_of_table);
    const auto address = co_await field(memory, symbols, address_in_entry);
    const auto number_at = co_await field(memory, symbols, number_of_module);
    if (!table_at || !entries || !address || !number_at) co_return std::nullopt;
    const uint64_t entry_size = entries->bits / 8;
    const auto table = co_await word(memory, thread_pointer + table_at->offset);
    const auto number = co_await word(memory, link_map + number_at->offset);
    if (!table || !number || *number == 0) co_return std::nullopt;
    const auto count = co_await word(memory, *table - entry_size);  // it precedes the table
    if (!count || *number > *count) co_return std::nullopt;
    const uint64_t entry = *table + entries->offset + *number * entry_size;
    const auto block = co_await word(memory, entry + address->offset);
    if (!block || *block == not_allocated || *block == 0) co_return std::nullopt;
    co_return block;
}

Task<std::string> GdbThreadLocals::answer_address(std::string what) {
    std::string_view words = what;
    const auto thread = threads_.parse(take_until(words, ','));
    const auto offset = to_number(take_until(words, ','));
    const auto link_map = to_number(words);
    if (!thread || !offset || !link_map) co_return bad_packet;
    const GdbProcesses::One* one = processes_.of_thread(thread->tid);
    if (!one) co_return "E03";
    const pid_t tid = one->is_past() ? one->parents_tid : thread->tid;
    const auto registers = one->shown().registers(tid);
    if (!registers) co_return "E03";
    const uint64_t thread_pointer = registers->general.fs_base;
    DebuggeeMemory& memory = one->shown().memory();
    const auto its = symbols_.find(one->process->pid());
    Symbols symbols = its == symbols_.end() ? Symbols() : its->second;
    const auto block = co_await block_of(memory, std::move(symbols), thread_pointer, *link_map);
    if (!block) co_return "E01";
    co_return fmt::format("{:x}", *block + *offset);
}

}  // namespace gpr::debug
