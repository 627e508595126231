#include "tools/call_values.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <cstring>

#include "tools/flag_names.h"

namespace gpr {

namespace {

constexpr int kernel_signals = 64;

template <class Value>
Value read(std::string_view bytes, size_t at = 0) {
    Value value{};
    if (at < bytes.size()) {
        std::memcpy(&value, bytes.data() + at, std::min(sizeof value, bytes.size() - at));
    }
    return value;
}

std::string named(std::string_view call, std::string_view place, uint64_t value) {
    const FlagSet* flags = flags_of(call, place);
    return flags ? flag_text(*flags, value) : fmt::format("{:#x}", value);
}

std::string internet_address(int family, const void* address) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    return inet_ntop(family, address, text.data(), text.size()) ? text.data() : "?";
}

std::string unix_path(std::string_view path) {
    if (path.empty()) return "";
    if (path.front() != 0) {
        return ", sun_path=" + quoted(path.substr(0, path.find('\0')), false);
    }
    return ", sun_path=@" + quoted(path.substr(1), false);  // an abstract name
}

// Why a signal came, for codes that all signals have.
std::string common_code(int code) {
    switch (code) {
        case SI_USER: return "SI_USER";
        case SI_KERNEL: return "SI_KERNEL";
        case SI_QUEUE: return "SI_QUEUE";
        case SI_TIMER: return "SI_TIMER";
        case SI_MESGQ: return "SI_MESGQ";
        case SI_ASYNCIO: return "SI_ASYNCIO";
        case SI_SIGIO: return "SI_SIGIO";
        case SI_TKILL: return "SI_TKILL";
        default: return "";
    }
}

std::string code_text(int signal, int code) {
    static constexpr std::array children{"CLD_EXITED",  "CLD_KILLED",  "CLD_DUMPED",
                                         "CLD_TRAPPED", "CLD_STOPPED", "CLD_CONTINUED"};
    static constexpr std::array segments{"SEGV_MAPERR", "SEGV_ACCERR", "SEGV_BNDERR",
                                         "SEGV_PKUERR"};
    static constexpr std::array buses{"BUS_ADRALN", "BUS_ADRERR", "BUS_OBJERR"};
    static constexpr std::array traps{"TRAP_BRKPT", "TRAP_TRACE", "TRAP_BRANCH", "TRAP_HWBKPT"};
    static constexpr std::array sums{"FPE_INTDIV", "FPE_INTOVF", "FPE_FLTDIV", "FPE_FLTOVF",
                                     "FPE_FLTUND", "FPE_FLTRES", "FPE_FLTINV", "FPE_FLTSUB"};
    static constexpr std::array opcodes{"ILL_ILLOPC", "ILL_ILLOPN", "ILL_ILLADR", "ILL_ILLTRP",
                                        "ILL_PRVOPC", "ILL_PRVREG", "ILL_COPROC", "ILL_BADSTK"};
    const auto of = [&](const auto& names) {
        const size_t index = static_cast<size_t>(code) - 1;
        return index < names.size() ? std::string(names[index]) : std::to_string(code);
    };
    if (std::string common = common_code(code); !common.empty()) return common;
    switch (signal) {
        case SIGCHLD: return of(children);
        case SIGSEGV: return of(segments);
        case SIGBUS: return of(buses);
        case SIGTRAP: return of(traps);
        case SIGFPE: return of(sums);
        case SIGILL: return of(opcodes);
        default: return std::to_string(code);
    }
}

const TracedPart* element(const TracedCall& call, unsigned argument, bool at_end, size_t index) {
    for (const TracedPart& part : call.parts) {
        if (part.about.kind == GPR_PART_ELEMENT && part.about.argument == argument &&
            (part.about.at_end != 0) == at_end && part.about.index == index) {
            return &part;
        }
    }
    return nullptr;
}

}  // namespace

std::string socket_address_text(std::string_view bytes) {
    const auto family = read<sa_family_t>(bytes);
    const std::string begin = "{sa_family=" + named("sockaddr", "family", family);
    switch (family) {
        case AF_UNIX:
            return begin + unix_path(bytes.substr(std::min<size_t>(bytes.size(), 2))) + "}";
        case AF_INET: {
            const auto in = read<sockaddr_in>(bytes);
            return fmt::format("{}, sin_port=htons({}), sin_addr=inet_addr(\"{}\")}}", begin,
                               ntohs(in.sin_port), internet_address(AF_INET, &in.sin_addr));
        }
        case AF_INET6: {
            const auto in = read<sockaddr_in6>(bytes);
            return fmt::format(
                "{}, sin6_port=htons({}), sin6_flowinfo=htonl({}), inet_pton(AF_INET6, \"{}\", "
                "&sin6_addr), sin6_scope_id={}}}",
                begin, ntohs(in.sin6_port), ntohl(in.sin6_flowinfo),
                internet_address(AF_INET6, &in.sin6_addr), in.sin6_scope_id);
        }
        case AF_NETLINK: {
            const auto netlink = read<sockaddr_nl>(bytes);
            return fmt::format("{}, nl_pid={}, nl_groups={:08x}}}", begin, netlink.nl_pid,
                               netlink.nl_groups);
        }
        default:
            return fmt::format("{}, sa_data={}}}", begin,
                               quoted(bytes.substr(std::min<size_t>(bytes.size(), 2)), false));
    }
}

std::string signal_set_text(std::string_view bytes) {
    const auto set = read<uint64_t>(bytes);
    // A set of nearly all is shown by what it lacks.
    const bool lacks = __builtin_popcountll(set) > kernel_signals / 2;
    std::string text;
    for (int signal = 1; signal <= kernel_signals; signal++) {
        const bool is_in = set >> (signal - 1) & 1;
        if (is_in == lacks) continue;
        const std::string name = signal_name(signal);
        text += (text.empty() ? "" : " ") + (name.starts_with("SIG") ? name.substr(3) : name);
    }
    return fmt::format("{}[{}]", lacks ? "~" : "", text);
}

std::string wait_status_text(uint32_t status) {
    const int s = static_cast<int>(status);
    if (WIFEXITED(s)) {
        return fmt::format("[{{WIFEXITED(s) && WEXITSTATUS(s) == {}}}]", WEXITSTATUS(s));
    }
    if (WIFSIGNALED(s)) {
        return fmt::format("[{{WIFSIGNALED(s) && WTERMSIG(s) == {}{}}}]", signal_name(WTERMSIG(s)),
                           WCOREDUMP(s) ? " && WCOREDUMP(s)" : "");
    }
    if (WIFSTOPPED(s)) {
        return fmt::format("[{{WIFSTOPPED(s) && WSTOPSIG(s) == {}}}]", signal_name(WSTOPSIG(s)));
    }
    if (WIFCONTINUED(s)) return "[{WIFCONTINUED(s)}]";
    return fmt::format("[{:#x}]", status);
}

std::string signal_action_text(std::string_view bytes) {
    struct Action {  // the kernel's
        uint64_t handler, flags, restorer, mask;
    };
    const auto action = read<Action>(bytes);
    const std::string handler = action.handler == 0   ? "SIG_DFL"
                                : action.handler == 1 ? "SIG_IGN"
                                                      : fmt::format("{:#x}", action.handler);
    const std::string restorer =
        action.restorer == 0 ? "" : fmt::format(", sa_restorer={:#x}", action.restorer);
    return fmt::format("{{sa_handler={}, sa_mask={}, sa_flags={}{}}}", handler,
                       signal_set_text(bytes.size() < sizeof action ? "" : bytes.substr(24)),
                       named("sigaction", "sa_flags", action.flags), restorer);
}

std::string signal_info_text(std::string_view bytes) {
    siginfo_t info{};
    std::memcpy(&info, bytes.data(), std::min(bytes.size(), sizeof info));
    std::string text = fmt::format("{{si_signo={}, si_code={}", signal_name(info.si_signo),
                                   code_text(info.si_signo, info.si_code));
    const bool is_fault = info.si_code > 0 && info.si_code != SI_KERNEL;
    if (info.si_code <= 0 && info.si_code != SI_TIMER) {
        text += fmt::format(", si_pid={}, si_uid={}", info.si_pid, info.si_uid);
        if (info.si_code == SI_QUEUE) text += fmt::format(", si_int={}", info.si_int);
    } else if (info.si_signo == SIGCHLD && is_fault) {
        const bool exited = info.si_code == CLD_EXITED;
        text += fmt::format(", si_pid={}, si_uid={}, si_status={}, si_utime={}, si_stime={}",
                            info.si_pid, info.si_uid,
                            exited ? std::to_string(info.si_status) : signal_name(info.si_status),
                            info.si_utime, info.si_stime);
    } else if (is_fault) {
        text += info.si_addr ? fmt::format(", si_addr={}", info.si_addr) : ", si_addr=NULL";
    }
    return text + "}";
}

std::string end_text(uint32_t status) {
    const int s = static_cast<int>(status);
    if (WIFSIGNALED(s)) return fmt::format("+++ killed by {} +++", signal_name(WTERMSIG(s)));
    return fmt::format("+++ exited with {} +++", WEXITSTATUS(s));
}

std::string vector_text(const TracedCall& call, unsigned argument, bool at_end,
                        const TracedPart& vector) {
    std::string text = "[";
    const size_t taken = vector.bytes.size() / 16;
    for (size_t i = 0; i < taken; i++) {
        const auto base = read<uint64_t>(vector.bytes, i * 16);
        const auto length = read<uint64_t>(vector.bytes, i * 16 + 8);
        const TracedPart* of = element(call, argument, at_end, i);
        const std::string shown = of && !of->about.missing
                                      ? quoted(of->bytes, of->about.whole > of->bytes.size())
                                  : base == 0 ? "NULL"
                                              : fmt::format("{:#x}", base);
        text += fmt::format("{}{{iov_base={}, iov_len={}}}", i == 0 ? "" : ", ", shown, length);
    }
    return text + (vector.about.whole / 16 > taken ? ", ...]" : "]");
}

std::string message_text(const TracedCall& call, unsigned argument, bool at_end,
                         const TracedPart& message) {
    struct Message {
        uint64_t name;
        uint32_t name_bytes, unused;
        uint64_t vector, vector_count, control, control_bytes;
        uint32_t flags;
    };
    const auto m = read<Message>(message.bytes);
    const TracedPart* name = call.part(argument, GPR_PART_NAME, at_end);
    const TracedPart* vector = call.part(argument, GPR_PART_VECTOR, at_end);
    const TracedPart* control = call.part(argument, GPR_PART_CONTROL, at_end);
    const auto pointer = [](uint64_t address) {
        return address == 0 ? std::string("NULL") : fmt::format("{:#x}", address);
    };
    std::string text = fmt::format(
        "{{msg_name={}, msg_namelen={}, msg_iov={}, msg_iovlen={}",
        name ? socket_address_text(name->bytes) : pointer(m.name), m.name_bytes,
        vector ? vector_text(call, argument, at_end, *vector) : pointer(m.vector), m.vector_count);
    if (m.control != 0) {
        text += fmt::format(", msg_control={}",
                            control ? quoted(control->bytes, false) : pointer(m.control));
    }
    return text + fmt::format(", msg_controllen={}, msg_flags={}}}", m.control_bytes,
                              named("msghdr", "flags", m.flags));
}

std::string strings_text(const TracedCall& call, unsigned argument, uint64_t address) {
    std::string text;
    for (size_t i = 0;; i++) {
        const TracedPart* one = element(call, argument, false, i);
        if (!one) one = element(call, argument, true, i);
        if (!one) break;
        text += fmt::format("{}{}", i == 0 ? "" : ", ",
                            one->about.missing
                                ? fmt::format("{:#x}", one->about.address)
                                : quoted(one->bytes, one->about.whole > one->bytes.size()));
    }
    return text.empty() ? fmt::format("{:#x}", address) : "[" + text + "]";
}

}  // namespace gpr
