#include "monitor/home/functions.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>

#include "base/log.h"
#include "monitor/home/children.h"
#include "monitor/home/code_placement.h"
#include "monitor/home/crossings.h"
#include "monitor/home/home.h"
#include "monitor/home/resolvers.h"
#include "monitor/home/trap_state.h"
#include "monitor/tracee/interrupted_call.h"
#include "monitor/tracee/ptrace.h"

namespace gpr::home {

namespace {

constexpr std::byte breakpoint{0xcc};
// The kernel's si_code for int3; a program cannot send a signal with it.
constexpr int by_instruction = SI_KERNEL;
// Long enough for the thread to get onto a CPU.
constexpr std::chrono::milliseconds lifted_for{2};

uint64_t offset_in_file(const Mapping& m, Address at) {
    return m.content_offset + (at - m.range.begin);
}

Result<void> set_breakpoints(RemoteMemory& memory, const Mapping& m, Range pages) {
    uint64_t first = offset_in_file(m, pages.begin), last = first + pages.size();
    for (const ChosenFunction& f : m.functions->list) {
        uint64_t begin = std::max(f.begin, first), end = std::min(f.end, last);
        if (begin >= end) continue;
        std::vector<std::byte> bytes(end - begin, breakpoint);
        Address at = m.range.begin + (begin - m.content_offset);
        if (memory.write(at, bytes.data(), bytes.size()) != bytes.size()) {
            return fail(errno, fmt::format("cannot set a breakpoint in {}!{}; the kernel may refuse"
                                           " it (proc_mem.force_override=never)",
                                           m.functions->library, f.name));
        }
    }
    return {};
}

std::optional<Breakpoint> breakpoint_at(HomeProcess& process, Address at) {
    Mapping place;
    if (process.fragment) {
        if (Mapping* m = process.fragment->space.find(at)) place = *m;
    } else {
        for (const InheritedFunctions& parents : process.inherited_functions) {
            if (!parents.range.contains(at)) continue;
            place.range = parents.range;
            place.functions = parents.functions;
            place.content_offset = parents.content_offset;
        }
    }
    if (!place.functions) return std::nullopt;
    const ChosenFunction* f = place.functions->find(offset_in_file(place, at));
    if (!f) return std::nullopt;
    uint64_t first = std::max(f->begin, place.content_offset) - place.content_offset;
    uint64_t last = std::min(f->end - place.content_offset, place.range.size());
    Range code{place.range.begin + first, place.range.begin + last};
    bool from_its_start = offset_in_file(place, at) == f->begin;
    return Breakpoint{*f, place.functions->library, code.pages(), from_its_start, std::nullopt};
}

}  // namespace

const FoundFunctions& Functions::functions_in(int fd, const std::string& path) {
    struct stat st {};
    fstat(fd, &st);
    auto [known, is_new] = found_functions_.try_emplace(
        FileIdentity{st.st_dev, st.st_ino, st.st_mtim.tv_sec, st.st_mtim.tv_nsec});
    if (is_new) {
        std::string library = std::filesystem::path(path).filename().string();
        auto found = find_functions(fd, library, home_.policy.function_rules(path));
        if (found) {
            known->second = std::move(*found);
        } else {
            spdlog::info("no functions in {}: {}", path, found.error().message());
        }
    }
    return known->second;
}

Result<void> Functions::place_functions(HomeProcess& process, Mapping& m, const std::string& path,
                                        uint64_t offset) {
    if (home_.policy.function_rules(path).empty()) return {};
    for (const InheritedFunctions& parents : process.inherited_functions) {
        if (parents.range != m.range) continue;
        m.functions = parents.functions;
        m.content = parents.content;
        m.content_offset = parents.content_offset;
    }
    if (!m.functions) {
        GPR_TRY(const bool is_the_file, home_.code_placement.keep_text(process, m, path, offset));
        if (!is_the_file) spdlog::warn("{} is gone: no functions of it are found", path);
        if (is_the_file) {
            const FoundFunctions& found = functions_in(m.content->get(), path);
            for (const SplitRule& rule : found.rules) home_.rule_use.note(rule);
            m.functions = found.functions;
        }
    }
    if (!m.functions) {
        m.content.reset();
        return {};
    }
    spdlog::debug("functions of {} at {:#x} run at the acceptor", path, m.range.begin.value);
    return set_breakpoints(process.fragment->memory(), m, m.range);
}

Result<void> Functions::remove_breakpoints(const HomeProcess& process) {
    for (const auto& [begin, m] : process.fragment->space.all()) {
        if (!m.functions || !m.content) continue;
        const uint64_t first = m.content_offset, last = first + m.range.size();
        for (const ChosenFunction& f : m.functions->list) {
            const uint64_t from = std::max(f.begin, first), to = std::min(f.end, last);
            if (from >= to) continue;
            std::vector<std::byte> code(to - from);
            const ssize_t got =
                pread(m.content->get(), code.data(), code.size(), static_cast<off_t>(from));
            const Address at = begin + (from - first);
            if (got != static_cast<ssize_t>(code.size()) ||
                !process.fragment->memory().write_exact(at, code.data(), code.size())) {
                return fail(fmt::format("a breakpoint in {}!{} cannot be removed",
                                        m.functions->library, f.name));
            }
        }
    }
    return {};
}

// The child has a copy of its parent's memory, or shares it.
void Functions::inherit_functions(const HomeProcess& parent, HomeProcess& child) {
    child.trap_action = parent.trap_action;
    child.blocking_trap = parent.blocking_trap;
    child.inherited_functions = parent.inherited_functions;
    if (!parent.fragment) return;
    for (const auto& [begin, m] : parent.fragment->space.all()) {
        if (!m.functions) continue;
        child.inherited_functions.push_back({m.range, m.functions, m.content, m.content_offset});
    }
}

// A thread here has stopped with SIGTRAP. True if it was one of our breakpoints, and is handled.
bool Functions::meets_breakpoint(HomeThread& thread) {
    if (!home_.policy.has_functions() || thread.remote() || thread.helper) return false;
    auto info = trace::signal_info(thread.tid);
    if (!info) return false;
    // A pending SIGTRAP that the program had blocked hides that of our breakpoint.
    if (info->si_code != by_instruction && !thread.blocks_trap) return false;
    auto context = capture_context(thread.tid);
    if (!context) return false;
    HomeProcess& process = *thread.process;
    Address at{context->regs.rip - 1};
    auto met = breakpoint_at(process, at);
    if (!met) {
        // The breakpoint may have been removed since, by another thread's mprotect.
        std::byte now = breakpoint;
        auto memory = RemoteMemory::open(process.pid);
        bool gone = info->si_code == by_instruction && memory && memory->read(at, &now, 1) == 1 &&
                    now != breakpoint && now != std::byte{3};
        if (!gone) return false;
        context->regs.rip = at.value;
        trace::set_registers(thread.tid, context->regs);
        trace::resume(thread.tid);
        return true;
    }
    context->regs.rip = at.value;
    TrapState::repair_mask(thread, *context);
    // A blocked SIGTRAP that had been sent to the program has been merged with our breakpoint's: it
    // is queued again.
    if (info->si_code != by_instruction) met->swallowed = *info;
    if (met->function.resolver) {
        spawn(home_.resolvers.run_resolver(thread, std::move(*context), std::move(*met)));
    } else {
        spawn(leave_for(thread, std::move(*context), std::move(*met)));
    }
    return true;
}

Task<void> Functions::leave_for(HomeThread& thread, ThreadContext context, Breakpoint met) {
    HomeProcess& process = *thread.process;
    bool native = process.state == HomeProcess::State::native;
    bool can_split = native && !process.shares_memory_with && process.threads.size() == 1;
    // It came for memory that only home may use, and needs this code to use it.
    bool visiting = Clock::now() < thread.visits_until;
    const Mapping* code = native ? nullptr : process.fragment->space.find({context.regs.rip});
    bool has_begun_here = code && goes_on_with_call(*code, context.regs);
    if (visiting || has_begun_here || (native && !can_split)) {
        co_await run_function_here(thread, std::move(context), std::move(met));
        co_return;
    }
    if (can_split) {  // and will hit the breakpoint again
        co_await home_.children.split_stopped(process, thread, context);
        co_return;
    }
    FunctionUse& use = home_.stats.functions[fmt::format("{}!{}", met.library, met.function.name)];
    use.crossings++;
    if (met.from_its_start) use.calls++;
    pid_t tid = thread.tid;
    spdlog::debug("thread {} leaves for {}: {}!{} runs there", tid,
                  home_.acceptors.at(met.function.node).link.peer_name(), met.library,
                  met.function.name);
    co_await home_.crossings.depart(thread, context, met.function.node, false);
    auto it = home_.threads.find(tid);
    if (it == home_.threads.end() || it->second.get() != &thread) co_return;
    if (met.swallowed) co_await TrapState::queue_again(thread, *met.swallowed);
    co_await home_.trap_state.repair_trap_action(thread);
}

// Removes the breakpoints for a moment. Other threads may run the function here meanwhile; that
// costs time, not correctness.
Task<void> Functions::run_function_here(HomeThread& thread, ThreadContext context, Breakpoint met) {
    HomeProcess& process = *thread.process;
    pid_t tid = thread.tid;
    HomeProcess* owner = process.shares_memory_with ? process.shares_memory_with : &process;
    std::shared_ptr<Fragment> fragment;
    for (auto& [pid, other] : home_.processes) {
        if (other.get() == owner) fragment = other->fragment;
    }
    if (fragment && fragment->has_helpers()) {
        // The page is replaced, so that running threads see the old content or the new one, never a
        // mixture.
        co_await fragment->page_mover().call(SYS_madvise, met.pages.begin.value, met.pages.size(),
                                             MADV_DONTNEED);
        home_.loop.after(lifted_for, [this, weak = std::weak_ptr(fragment), pages = met.pages] {
            if (auto still = weak.lock()) set_breakpoints_again(*still, pages);
        });
    } else {
        for (const InheritedFunctions& parents : process.inherited_functions) {
            if (!parents.range.contains(met.pages.begin)) continue;
            std::vector<std::byte> bytes(met.pages.size());
            auto from = static_cast<off_t>(parents.content_offset +
                                           (met.pages.begin - parents.range.begin));
            ssize_t got = pread(parents.content->get(), bytes.data(), bytes.size(), from);
            auto memory = RemoteMemory::open(process.pid);
            if (got > 0 && memory) {
                memory->write(met.pages.begin, bytes.data(), static_cast<size_t>(got));
            }
        }
    }
    if (!home_.threads.contains(tid)) co_return;
    trace::set_registers(tid, context.regs);
    trace::resume(tid);
}

void Functions::set_breakpoints_again(Fragment& fragment, Range pages) {
    fragment.space.overlapping(pages, [&](const Mapping& m) {
        if (!m.functions) return;
        Range part{std::max(m.range.begin, pages.begin), std::min(m.range.end, pages.end)};
        auto set = set_breakpoints(fragment.memory(), m, part);
        if (!set) spdlog::debug("{}", set.error().message());  // the process has ended
    });
}

}  // namespace gpr::home
