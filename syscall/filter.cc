// The order of the tests matters for speed at home. For a call that is allowed by its number alone,
// neither the instruction pointer nor the arguments are loaded. At installation the kernel then
// proves that the call is always allowed, puts it into a bitmap and no longer runs the program for
// it (Linux 5.11, seccomp_is_const_allow).
#include "syscall/filter.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <map>

#include "base/result.h"
#include "syscall/filter_program.h"
#include "syscall/ioctl_memory.h"
#include "syscall/stub_calls.h"
#include "syscall/table.h"

namespace gpr {
namespace {

using Label = FilterProgram::Label;

constexpr uint32_t refuse_action = SECCOMP_RET_ERRNO | ENOSYS;
enum class Side { acceptor, home };

class Builder {
public:
    Builder(Side side, const FilterOptions& options) : side_(side), options_(options) {
        allow_ = program_.ret(SECCOMP_RET_ALLOW);
        always_notify_ = program_.ret(SECCOMP_RET_USER_NOTIF);
        bool home = side == Side::home;
        auto answer = [&](uint32_t action) {
            return home ? unless_stub(action) : program_.ret(action);
        };
        notify_ = answer(SECCOMP_RET_USER_NOTIF);
        refuse_ = answer(refuse_action);
        unknown_ = answer(SECCOMP_RET_ERRNO | EINVAL);
        no_fd_ = answer(SECCOMP_RET_ERRNO | EBADF);
    }

    std::vector<sock_filter> build() {
        for (const Row* row : all_rows()) {
            Label of_program = action_of(*row);
            actions_[row->number] =
                side_ == Side::home ? of_program : or_stub(row->number, of_program);
        }
        // A tracer that skips a call sets its number to -1; the kernel then keeps rax as it is.
        actions_[uint32_t(-1)] = allow_;
        actions_[gpr_park_number] = always_notify_;
        // Numbers without a row are refused.
        Label by_number = program_.by_number(actions_, refuse_);
        Label foreign = program_.ret(options_.kill_foreign_arch
                                         ? static_cast<uint32_t>(SECCOMP_RET_KILL_PROCESS)
                                         : refuse_action);
        program_.by_architecture(by_number, foreign);
        auto built = program_.finish();
        GPR_ASSERT(built.size() < BPF_MAXINSNS);
        return built;
    }

private:
    Label unless_stub(uint32_t action) {
        Label otherwise = program_.ret(action);
        return program_.by_caller(options_.stub_word, allow_, otherwise);
    }

    // At an acceptor: what the stub may call, or else the same as for the program.
    Label or_stub(uint32_t number, Label of_program) {
        const StubCall* call = find_stub_call(number);
        if (!call || of_program == allow_) return of_program;
        bool anyhow = call->argument < 0;
        Label in_stub = anyhow ? allow_ : of_program;
        for (size_t i = 0; !anyhow && i < call->count; i++) {
            in_stub = program_.branch(BPF_JEQ, call->values[i], allow_, in_stub);
        }
        if (!anyhow) {
            if (call->mask != UINT32_MAX) in_stub = program_.mask(call->mask, in_stub);
            in_stub = program_.load(low_half_of(static_cast<size_t>(call->argument)), in_stub);
        }
        return program_.by_caller(options_.stub_word, in_stub, of_program);
    }

    Label label_of(Verdict verdict) const {
        switch (verdict) {
            case Verdict::allow: return allow_;
            case Verdict::notify: return notify_;
            case Verdict::refuse: return refuse_;
            case Verdict::unknown: return unknown_;
            case Verdict::no_fd: return no_fd_;
        }
        return notify_;
    }

    Label row_default(const Row& row) {
        if (row.number == SYS_rseq && options_.notes_rseq) return notify_;
        if (row.place == Place::refused) return refuse_;
        if (side_ == Side::home) {
            const bool launching = is_of_launcher(row.number);
            bool extra = options_.notify_everything && !launching;
            bool opens = options_.conditions.stops_opens() && row.opens_by_name();
            if (extra || opens || row.home_notify()) return notify_;
            if (!options_.files_elsewhere) return allow_;
            if (row.number == SYS_close_range) {  // up to the acceptor's descriptors
                return program_.load(low_half_of(1),
                                     program_.branch(BPF_JGE, options_.fd_base, notify_, allow_));
            }
            if (launching) return fds_elsewhere(row);
            if (options_.conditions.mixed_session && row.polls()) return notify_;
            return row.path_argument() >= 0 ? notify_ : fds_elsewhere(row);
        }
        if (row.place == Place::native) return allow_;
        bool sends = row.number == SYS_sendmsg || row.number == SYS_sendmmsg;
        if (sends && options_.watch_sent_fds) return notify_;
        if (options_.watch_pins && row.number == SYS_io_uring_register) return notify_;
        if (options_.watch_pins && row.number == SYS_setsockopt) {
            Label pins = program_.branch(BPF_JEQ, SOL_XDP, notify_, fds_owned(row));
            return program_.load(low_half_of(1), pins);
        }
        if (row.place != Place::fd_owner) return notify_;
        if (!row.has(Trait::fd_first)) return fds_owned(row);
        Label owned = fds_owned(row);
        if (row.number == SYS_ioctl) owned = unless_it_may_pin(owned);
        return program_.load(low_half_of(0), program_.branch(BPF_JGT, INT32_MAX, no_fd_, owned));
    }

    // may_name_memory()
    Label unless_it_may_pin(Label otherwise) {
        Label named = program_.branch(BPF_JSET, names_memory, notify_, otherwise);
        return program_.load(low_half_of(1),
                             program_.branch(BPF_JSET, gives_argument, named, otherwise));
    }

    // Whether every fd argument is in [fd_base, fd_last]: AT_FDCWD and -1 are not. Rows with fds at
    // the same positions share the test.
    Label fds_owned(const Row& row) {
        uint32_t places = row.fd_arguments();
        auto [known, is_new] = fd_tests_.try_emplace(places, allow_);
        for (size_t i = 6; is_new && i-- > 0;) {
            if ((places & (1u << i)) == 0) continue;
            Label positive = program_.branch(BPF_JGT, options_.fd_last, notify_, known->second);
            known->second = program_.load(
                low_half_of(i), program_.branch(BPF_JGE, options_.fd_base, positive, notify_));
        }
        return known->second;
    }

    // Whether some fd argument is the acceptor's.
    Label fds_elsewhere(const Row& row) {
        uint32_t places = row.fd_arguments();
        auto [known, is_new] = fd_tests_.try_emplace(places, allow_);
        for (size_t i = 6; is_new && i-- > 0;) {
            if ((places & (1u << i)) == 0) continue;
            Label positive = program_.branch(BPF_JGT, INT32_MAX, known->second, notify_);
            known->second = program_.load(low_half_of(i), program_.branch(BPF_JGE, options_.fd_base,
                                                                          positive, known->second));
        }
        return known->second;
    }

    // The argument rules of a call in table order, then its row's default.
    Label action_of(const Row& row) {
        Label otherwise = row_default(row);
        auto rules = argument_rules();
        for (size_t i = rules.size(); i-- > 0;) {
            const ArgumentRule& rule = rules[i];
            if (rule.number != row.number) continue;
            if (!options_.conditions.meet(rule.condition)) continue;
            Label match = label_of(side_ == Side::acceptor ? rule.acceptor : rule.home);
            if (match == otherwise) continue;
            if (rule.mask == 0) {
                otherwise = match;
                continue;
            }
            otherwise =
                program_.by_argument(rule.argument, rule.mask, rule.value, match, otherwise);
        }
        return remote_or(row, otherwise);
    }

    // Split rules come before the table.
    Label remote_or(const Row& row, Label otherwise) {
        for (const RemoteCall& call : options_.remote_calls) {
            if (call.number != row.number || otherwise == notify_) continue;
            if (call.family == RemoteCall::any_family) return notify_;
            otherwise = program_.by_argument(0, UINT32_MAX, static_cast<uint32_t>(call.family),
                                             notify_, otherwise);
        }
        return otherwise;
    }

    Side side_;
    const FilterOptions& options_;
    FilterProgram program_;
    Label allow_ = 0, always_notify_ = 0, notify_ = 0, refuse_ = 0, unknown_ = 0, no_fd_ = 0;
    std::map<uint32_t, Label> fd_tests_;  // by the set of fd arguments
    std::map<uint32_t, Label> actions_;   // by number
};

}  // namespace

bool is_of_launcher(uint32_t number) {
    return number == SYS_sendmsg || number == SYS_recvmsg || number == SYS_execve;
}

std::vector<sock_filter> acceptor_filter(const FilterOptions& options) {
    return Builder(Side::acceptor, options).build();
}

std::vector<sock_filter> home_filter(const FilterOptions& options) {
    return Builder(Side::home, options).build();
}

}  // namespace gpr
