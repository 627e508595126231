// A system call that a thread at an acceptor makes on what lives at home, while home handles it.
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
    SyscallArguments given{};  // the program's arguments
    const Row* row = nullptr;  // null: an unknown call
    // nullopt: the call works on the program's own memory ("raw").
    std::optional<MarshalledCall> marshalled;
    bool repeatable = false;
    bool wants_reply = true;
    bool may_delegate = false;  // the file that it opens
    bool may_remember = false;  // what it finds out about a path
    uint64_t file = 0;  // the acceptor's file that dup2 or dup3 shall give a name: fd_names.h

    // What to change right before the call is made, or after it.
    std::optional<SignalAction> action;
    std::optional<MemoryLimitCall> memory_limit;
    SharedUse use;
    std::vector<FileSize> sizes;
    Usage used_at_others;  // for a call that reports usage: at acceptors without the caller

    // Of the image that made the call; the shadow's mailbox is in it.
    std::shared_ptr<Fragment> fragment;
    std::shared_ptr<StubThread> shadow;
    // The call as the shadow makes it, with arguments that point to the bounce area; and its
    // result.
    Call made;

    // Parses bytes from a peer.
    static Result<ForwardedCall> parse(ReceivedFrame& frame);
    // Puts the data that came with the call into the bounce area of the shadow, which must be
    // locked.
    void place();
    // The data that the call left there, for the acceptor.
    [[nodiscard]] std::vector<std::byte> gather() const;
    // The part of the bounce area that one of made.args points to; empty if it points elsewhere.
    [[nodiscard]] HostileMemory bytes(uint64_t at, size_t size) const;

    // Whether the kernel may reach any of the program's memory, through pointers that we do not
    // follow.
    [[nodiscard]] bool reaches_anywhere() const;
    [[nodiscard]] bool opens_by_name() const { return row && row->opens_by_name(); }
    // The path of a call that opens_by_name(), with its terminator; empty for a raw call.
    [[nodiscard]] std::string_view name() const;

private:
    Address bounce_at_;
    HostileMemory bounce_;
};

// The most bytes of memory that a call can fill (or read, to write them to its descriptor), judging
// by the file: a size that the caller made up must cost nothing. Page faults fetch what is missing.
uint64_t most_to_move(pid_t pid, const ForwardedCall& call, bool fills);

}  // namespace gpr
