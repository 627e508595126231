// A thread's registers under the numbers that the target description gives them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/debug/debuggee.h"
#include "monitor/tracee/extended_state.h"

namespace gpr::debug {

// Parts of gdb's target description: org.gnu.gdb.i386.*.
enum class Feature : uint8_t { core, sse, linux_calls, segments, avx, avx512, pkeys };

struct GdbRegister {
    // Where its value is: in user_regs_struct, or in a part of the extended state.
    enum class Part : uint8_t { general, x87, x87_tags, sse, mxcsr, component };

    std::string name;
    size_t size = 0;  // in bytes, for gdb
    std::string type;
    std::string group;  // empty: the usual one for its type
    Feature feature = Feature::core;
    Part part = Part::general;
    unsigned component = 0;
    size_t offset = 0;       // in user_regs_struct or the component; else in the XSAVE image
    size_t stored_size = 0;  // in that place
};

class GdbRegisters {
public:
    // The layout tells which registers the processor has.
    explicit GdbRegisters(const ExtendedStateLayout& layout);
    static const GdbRegisters& of_this_processor();

    // Indexed by their numbers.
    [[nodiscard]] const std::vector<GdbRegister>& all() const { return all_; }
    [[nodiscard]] bool has(Feature feature) const;

    // Little-endian. nullopt: there is no such register, or the thread's state lacks it.
    [[nodiscard]] std::optional<std::string> read(const Registers& from, size_t number) const;
    // bytes: as read() returns them. False if their number is wrong, or as for read().
    [[nodiscard]] bool write(Registers& to, size_t number, std::string_view bytes) const;

    // All registers in hexadecimal; x instead of digits for what is not known.
    [[nodiscard]] std::string read_all(const Registers& from) const;
    // Skips registers that are given as x. False: a wrong number of digits, or other characters.
    [[nodiscard]] bool write_all(Registers& to, std::string_view digits) const;

private:
    void add(GdbRegister what);
    void add_general();
    void add_x87();
    void add_vectors();
    void add_avx512();
    [[nodiscard]] size_t place_of(const GdbRegister& what) const;
    [[nodiscard]] bool available(const Registers& in, const GdbRegister& what) const;
    void begin_to_use(Registers& in, const GdbRegister& what) const;

    const ExtendedStateLayout layout_;
    std::vector<GdbRegister> all_;
};

}  // namespace gpr::debug
