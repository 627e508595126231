#include "monitor/tracee/descriptor_passing.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/fd.h"
#include "base/file_text.h"
#include "monitor/tracee/stub_thread.h"

namespace gpr {

namespace {

// A message with one descriptor.
struct Message {
    msghdr header{};
    iovec one_byte{};
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
    char byte = 0;

    // The same with addresses of a copy that is at `base`.
    static Message at(uint64_t base) {
        auto pointer = [base](size_t offset) { return reinterpret_cast<void*>(base + offset); };
        Message m;
        m.one_byte = {pointer(offsetof(Message, byte)), 1};
        m.header.msg_iov = static_cast<iovec*>(pointer(offsetof(Message, one_byte)));
        m.header.msg_iovlen = 1;
        m.header.msg_control = pointer(offsetof(Message, control));
        m.header.msg_controllen = sizeof m.control;
        return m;
    }
};

bool send_descriptor(int socket, int fd) {
    Message m;
    m.one_byte = {&m.byte, 1};
    m.header.msg_iov = &m.one_byte;
    m.header.msg_iovlen = 1;
    m.header.msg_control = m.control.data();
    m.header.msg_controllen = sizeof m.control;
    cmsghdr* control = CMSG_FIRSTHDR(&m.header);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(control), &fd, sizeof fd);
    return sendmsg(socket, &m.header, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

// Our copy of the thread's descriptor. The program can forge its id, so that of a thread which we
// do not trace is refused. Before Linux 6.9 only descriptors of its process's main thread can be
// had.
Fd copy_of(int64_t pid, int64_t tid, int number) {
    constexpr unsigned pidfd_thread = O_EXCL;  // PIDFD_THREAD, Linux 6.9
    const std::string status = text_of(fmt::format("/proc/{}/status", tid));
    if (status.find(fmt::format("\nTracerPid:\t{}\n", getpid())) == std::string::npos) return {};
    if (status.find(fmt::format("\nTgid:\t{}\n", pid)) == std::string::npos) return {};
    Fd thread(static_cast<int>(syscall(SYS_pidfd_open, tid, pidfd_thread)));
    if (!thread) thread = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    return Fd(static_cast<int>(syscall(SYS_pidfd_getfd, thread.get(), number, 0)));
}

uint64_t bits(int number) { return static_cast<uint64_t>(number); }

}  // namespace

Task<int64_t> pass_descriptor(StubThread& stub, int fd, int number, bool closes_on_exec) {
    auto guard = co_await stub.lock();
    const HostileMemory scratch = stub.scratch();
    const uint64_t at = stub.scratch_address().value;
    std::vector<Call> calls{
        {SYS_getpid, {}, 0},
        {SYS_gettid, {}, 0},
        {SYS_socketpair, {AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, at}, 0},
    };
    co_await stub.run_locked(calls);
    if (calls.back().result != 0) co_return calls.back().result;
    // The program can forge these numbers, too: they are used in its own table only.
    const auto ends = scratch.get<std::array<int, 2>>().to_pass_on();
    int64_t result = -EBADF;
    if (const Fd end = copy_of(calls[0].result, calls[1].result, ends[0]);
        end && send_descriptor(end.get(), fd)) {
        scratch.put(0, Message::at(at));
        std::vector<Call> receive{
            {SYS_recvmsg, {bits(ends[1]), at, MSG_DONTWAIT | MSG_CMSG_CLOEXEC}, 0}};
        co_await stub.run_locked(receive);
        result = receive.front().result;
    }
    std::vector<Call> rest;
    if (result == 1) {
        constexpr size_t of_number = offsetof(Message, control) + CMSG_LEN(0);
        const int received = scratch.get<int>(of_number).to_pass_on();
        const uint64_t flags = closes_on_exec ? O_CLOEXEC : 0;
        if (received == number) {
            const uint64_t flag = closes_on_exec ? FD_CLOEXEC : 0;
            rest.push_back({SYS_fcntl, {bits(number), F_SETFD, flag}, 0});
        } else {
            rest.push_back({SYS_dup3, {bits(received), bits(number), flags}, 0});
            rest.push_back({SYS_close, {bits(received)}, 0});
        }
        co_await stub.run_locked(rest);
        result = rest.front().result < 0 ? rest.front().result : number;
    }
    std::vector<Call> close_ends;
    for (const int end : ends) {
        if (end != number || result < 0) close_ends.push_back({SYS_close, {bits(end)}, 0});
    }
    co_await stub.run_locked(close_ends);
    co_return result;
}

}  // namespace gpr
