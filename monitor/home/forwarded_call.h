// A system call of a thread at an acceptor on what lives here, on its way through home.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "monitor/home/memory_limit.h"
#include "monitor/home/process.h"
#include "monitor/home/shared_file.h"
#include "monitor/paging/fragment.h"
#include "monitor/tracee/signal_action.h"
#include "monitor/tracee/stub_thread.h"
#include "syscall/marshal.h"
#include "syscall/table.h"
#include "transport/link.h"

namespace gpr {

struct ForwardedCall {
    uint32_t number = 0;
    SyscallArguments given{};                  // as the program passed them
    const Row* row = nullptr;                  // none: the call is unknown
    std::optional<MarshalledCall> marshalled;  // none: it works on the program's own memory
    bool repeatable = false;
    bool wants_reply = true;
    uint64_t file = 0;  // of the acceptor, which dup2 and dup3 are to give a name: fd_names.h

    // What is to be set right before it is made, or after.
    std::optional<SignalAction> action;
    std::optional<MemoryLimitCall> memory_limit;
    SharedUse use;
    std::vector<FileSize> sizes;
    Usage used_at_others;  // of a call that tells usage: at acceptors that the caller is not on

    std::shared_ptr<Fragment> fragment;  // of the image that called: the shadow's mailbox is in it
    std::shared_ptr<StubThread> shadow;
    Call made;  // by the shadow: its arguments lead to place()'s bounce; and its result

    // Foreign bytes.
    static Result<ForwardedCall> parse(ReceivedFrame& frame);
    // Puts what came with it into the bounce of the shadow, which is locked.
    void place();
    // What it left there, for the acceptor.
    [[nodiscard]] std::vector<std::byte> collect() const;
    // The part of the bounce that one of made.args points to; empty: it points elsewhere.
    [[nodiscard]] HostileMemory bytes(uint64_t at, size_t size) const;

    // Through pointers that nobody follows the kernel may reach any of the program's memory.
    [[nodiscard]] bool reaches_anywhere() const;
    [[nodiscard]] bool opens_by_name() const { return row && row->opens_by_name(); }
    // Of a call that opens_by_name(), with its end; empty if it is raw.
    [[nodiscard]] std::string_view name() const;

private:
    Address bounce_at_;
    HostileMemory bounce_;
};

}  // namespace gpr
