#include "monitor/node/clone_call.h"

#include <sys/syscall.h>

#include <cstring>

namespace gpr {

Task<int64_t> clone_in_stub(StubThread& stub, clone_args args, std::vector<pid_t> set_tid) {
    auto lock = co_await stub.lock();
    uint64_t at = stub.scratch_address().value;
    if (!set_tid.empty()) {
        args.set_tid = at + sizeof args;
        args.set_tid_size = set_tid.size();
        stub.scratch().write(sizeof args, std::as_bytes(std::span(set_tid)));
    }
    stub.scratch().put(0, args);
    std::vector<Call> calls{Call{SYS_clone3, {at, sizeof args}, 0}};
    co_await stub.run_locked(calls);
    co_return calls[0].result;
}

}  // namespace gpr
