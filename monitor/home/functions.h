// Single functions of a library that run at an acceptor, while the rest of the library runs
// anywhere. At home they are filled with breakpoints: a thread that gets into one, by a call,
// return, jump or unwinding, stops there and crosses.
// docs/decisions/0022-functions-are-breakpoints.md
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/address.h"
#include "base/result.h"
#include "monitor/home/breakpoint.h"
#include "monitor/home/part.h"
#include "monitor/rules/function_symbols.h"

namespace gpr {
struct Mapping;
struct ThreadContext;
}  // namespace gpr

namespace gpr::home {

struct Breakpoint;

class Functions {
public:
    explicit Functions(Home& home) : home_(home) {}

    Result<void> place_functions(HomeProcess& process, Mapping& mapping, const std::string& path,
                                 uint64_t file_offset);
    // The process is about to go on without acceptors.
    static Result<void> remove_breakpoints(const HomeProcess& process);
    static void inherit_functions(const HomeProcess& parent, HomeProcess& child);
    bool meets_breakpoint(HomeThread& thread);
    Task<void> run_function_here(HomeThread& thread, ThreadContext context, Breakpoint met);
    void set_breakpoints_again(Fragment& fragment, Range pages);

private:
    const FoundFunctions& functions_in(int fd, const std::string& path);
    Task<void> leave_for(HomeThread& thread, ThreadContext context, Breakpoint met);

    Home& home_;
    std::map<FileIdentity, FoundFunctions> found_functions_;
};

}  // namespace gpr::home
