#include "monitor/tracee/stub_signals.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/tracee/ptrace.h"
#include "stub/layout.h"

using namespace gpr;

namespace {

constexpr uint64_t bit_of(int signal) { return 1ULL << (signal - 1); }

// A child that stops before SIGSEGV is delivered, having gone to an instruction at `at`.
class StoppedChild {
public:
    StoppedChild(uint64_t at, unsigned char instruction) : pid_(fork()) {
        if (pid_ == 0) {
            void* page = mmap(reinterpret_cast<void*>(at), 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
            auto* code = static_cast<unsigned char*>(page);
            code[0] = instruction;
            code[1] = 0xfe;  // jmp to itself, after 0xeb
            raise(SIGSTOP);
            reinterpret_cast<void (*)()>(page)();
        }
        int status = 0;
        waitpid(pid_, &status, WUNTRACED);
        trace::seize(pid_, 0);
        kill(pid_, SIGCONT);
    }
    ~StoppedChild() {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
    StoppedChild(const StoppedChild&) = delete;
    StoppedChild& operator=(const StoppedChild&) = delete;

    [[nodiscard]] pid_t pid() const { return pid_; }
    void go_on_to(int signal) const {
        int status = 0;
        while (waitpid(pid_, &status, 0) == pid_ && WIFSTOPPED(status)) {
            if (WSTOPSIG(status) == signal && status >> 16 == 0) return;
            trace::resume(pid_);
        }
    }

private:
    pid_t pid_;
};

constexpr unsigned char hlt = 0xf4, jump_to_itself = 0xeb;
constexpr uint64_t elsewhere = 0x123450000000;

}  // namespace

TEST_CASE("a fault of the stub is one that its instructions cause") {
    StoppedChild in_stub(GPR_STUB_CODE, hlt);
    in_stub.go_on_to(SIGSEGV);
    CHECK(is_fault_in_stub(in_stub.pid()));

    StoppedChild of_program(elsewhere, hlt);
    of_program.go_on_to(SIGSEGV);
    CHECK_FALSE(is_fault_in_stub(of_program.pid()));

    StoppedChild sent(GPR_STUB_CODE, jump_to_itself);
    sent.go_on_to(SIGCONT);  // an interrupt during its group-stop would always be one stop ahead
    trace::resume(sent.pid());
    auto there = [&] {
        trace::interrupt(sent.pid());
        int status = 0;
        waitpid(sent.pid(), &status, 0);
        auto regs = trace::registers(sent.pid());
        trace::resume(sent.pid());
        return regs && regs->rip == GPR_STUB_CODE;
    };
    while (!there()) usleep(1000);
    kill(sent.pid(), SIGSEGV);
    sent.go_on_to(SIGSEGV);
    CHECK_FALSE(is_fault_in_stub(sent.pid()));
}

TEST_CASE("deadly is what is neither handled, ignored nor harmless") {
    signal(SIGUSR1, [](int) {});
    signal(SIGUSR2, SIG_IGN);
    uint64_t deadly = deadly_signals(getpid(), bit_of(SIGHUP));
    signal(SIGUSR1, SIG_DFL);
    signal(SIGUSR2, SIG_DFL);
    CHECK((deadly & bit_of(SIGPWR)) != 0);
    CHECK((deadly & bit_of(SIGRTMIN)) != 0);
    for (int other : {SIGUSR1, SIGUSR2, SIGHUP, SIGCHLD, SIGTSTP, SIGSTOP, SIGWINCH}) {
        CHECK((deadly & bit_of(other)) == 0);
    }
}
