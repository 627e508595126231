#include "tests/unit/acceptor/stub_process.h"

#include <linux/audit.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <utility>

#include "base/uapi/seccomp.h"

// Position independent; rdi is the mailbox: {number, arguments[6], result}.
asm(R"(
.pushsection .rodata
.globl gpr_test_stub_begin, gpr_test_stub_end
gpr_test_stub_begin:
    mov %rdi, %rbx
1:  mov $0x4770, %eax
    syscall
    mov 0(%rbx), %rax
    mov 8(%rbx), %rdi
    mov 16(%rbx), %rsi
    mov 24(%rbx), %rdx
    mov 32(%rbx), %r10
    mov 40(%rbx), %r8
    mov 48(%rbx), %r9
    syscall
    mov %rax, 56(%rbx)
    jmp 1b
gpr_test_stub_end:
.popsection
)");
extern "C" const unsigned char gpr_test_stub_begin[], gpr_test_stub_end[];

namespace gpr::test {
namespace {

constexpr uint32_t park = 0x4770;
constexpr int patience_ms = 10'000;

std::vector<sock_filter> filter() {
    const auto field = [](size_t offset) {
        return sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset));
    };
    return {
        field(offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, park, 2, 0),
        field(offsetof(seccomp_data, instruction_pointer) + 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, code_address >> 32, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
}

}  // namespace

Result<StubProcess> StubProcess::spawn(Sandbox& sandbox, pid_t wanted_pid,
                                       std::vector<int> kept_fds) {
    const Fd code(memfd_create("test-stub", MFD_CLOEXEC));
    const Fd mailbox(memfd_create("test-mailbox", MFD_CLOEXEC));
    const auto stub_size = static_cast<size_t>(gpr_test_stub_end - gpr_test_stub_begin);
    if (write(code.get(), gpr_test_stub_begin, stub_size) < 0 ||
        ftruncate(code.get(), page_size) == -1 || ftruncate(mailbox.get(), mailbox_size) == -1) {
        return fail(errno, "make the test's stub");
    }
    StubProcess made;
    made.mailbox_ = static_cast<uint8_t*>(
        mmap(nullptr, mailbox_size, PROT_READ | PROT_WRITE, MAP_SHARED, mailbox.get(), 0));
    EmptyProcessOptions options;
    options.code_memfd = code.get();
    options.code_address = code_address;
    options.code_size = page_size;
    options.mailbox_memfd = mailbox.get();
    options.mailbox_address = mailbox_address;
    options.mailbox_size = mailbox_size;
    options.entry = code_address;
    options.entry_argument = mailbox_address;
    options.stack_top = mailbox_address + mailbox_size;
    options.filter = filter();
    options.kept_fds = std::move(kept_fds);
    GPR_TRY(made.process, sandbox.spawn(wanted_pid, options));
    if (made.await_park() == 0) return fail("the test's stub did not park");
    return made;
}

StubProcess::StubProcess(StubProcess&& other) noexcept
    : process(std::move(other.process)),
      mailbox_(std::exchange(other.mailbox_, nullptr)),
      notification_(other.notification_) {}

StubProcess::~StubProcess() {
    if (mailbox_) munmap(mailbox_, mailbox_size);
}

pid_t StubProcess::await_park() {
    pollfd ready{process.listener.get(), POLLIN, 0};
    if (poll(&ready, 1, patience_ms) != 1 || (ready.revents & POLLIN) == 0) return 0;
    seccomp_notif notification{};
    if (ioctl(process.listener.get(), SECCOMP_IOCTL_NOTIF_RECV, &notification) == -1) return 0;
    if (notification.data.nr != static_cast<int>(park)) return 0;
    notification_ = notification.id;
    return static_cast<pid_t>(notification.pid);
}

void StubProcess::start_call(long number, std::vector<uint64_t> arguments) {
    arguments.resize(6);
    const auto word = static_cast<uint64_t>(number);
    memcpy(mailbox_, &word, sizeof(word));
    memcpy(mailbox_ + sizeof(word), arguments.data(), 6 * sizeof(uint64_t));
    seccomp_notif_resp answer{};
    answer.id = notification_;
    ioctl(process.listener.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

long StubProcess::call(long number, std::vector<uint64_t> arguments,
                       const std::function<void()>& meanwhile) {
    start_call(number, std::move(arguments));
    if (meanwhile) meanwhile();
    if (await_park() == 0) return -ETIME;
    long result = 0;
    memcpy(&result, mailbox_ + 7 * sizeof(uint64_t), sizeof(result));
    return result;
}

uint64_t StubProcess::put(const std::string& text) {
    memcpy(data(), text.c_str(), text.size() + 1);
    return data_address();
}

}  // namespace gpr::test
