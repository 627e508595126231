#include "tools/trace_options.h"

#include <fmt/format.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <functional>
#include <regex>
#include <span>

#include "base/suggest.h"
#include "syscall/table.h"
#include "tools/call_signatures.h"
#include "tools/count.h"
#include "tools/flag_names.h"

namespace gpr {

namespace {

constexpr unsigned usual_string_bytes = 32;
constexpr uint32_t stack_bytes = 12000;

using Names = std::initializer_list<std::string_view>;

bool is_in(Names names, const Row& row) {
    return std::ranges::find(names, std::string_view(row.name)) != names.end();
}

bool takes_file_name(const Row& row) {
    const std::vector<Parameter>* signature = signature_of(row.name);
    for (size_t i = 0; signature && i < std::min<size_t>(signature->size(), 6); i++) {
        const std::string& name = (*signature)[i].name;
        const bool is_path = name.find("name") != std::string::npos ||
                             name.find("path") != std::string::npos || name == "library";
        if (row.arguments.at(i).kind == Kind::string && is_path) return true;
    }
    return row.path_argument() >= 0 || is_in({"getcwd", "chdir", "chroot", "mount"}, row);
}

bool is_of_descriptors(const Row& row) {
    return row.fd_arguments() != 0 || row.changes_fds() ||
           is_in({"poll", "ppoll", "select", "pselect6", "epoll_create", "epoll_create1"}, row);
}

bool is_of_memory(const Row& row) {
    return row.has(Trait::maps_memory) || is_in({"brk",           "mmap",
                                                 "munmap",        "mprotect",
                                                 "mremap",        "madvise",
                                                 "mincore",       "msync",
                                                 "mlock",         "mlock2",
                                                 "munlock",       "mlockall",
                                                 "munlockall",    "mbind",
                                                 "get_mempolicy", "set_mempolicy",
                                                 "migrate_pages", "move_pages",
                                                 "shmat",         "shmdt",
                                                 "pkey_mprotect", "remap_file_pages",
                                                 "userfaultfd"},
                                                row);
}

bool is_of_processes(const Row& row) {
    return is_in({"clone", "clone3", "fork", "vfork", "execve", "execveat", "exit", "exit_group",
                  "wait4", "waitid", "kill", "tkill", "tgkill", "pidfd_open", "pidfd_send_signal",
                  "rt_sigqueueinfo", "rt_tgsigqueueinfo"},
                 row);
}

bool is_of_signals(const Row& row) {
    const std::string_view name = row.name;
    return name.starts_with("rt_") || name.starts_with("signalfd") ||
           is_in({"kill", "tkill", "tgkill", "sigaltstack", "pause", "pidfd_send_signal"}, row);
}

bool is_of_ipc(const Row& row) {
    const std::string_view name = row.name;
    return name.starts_with("shm") || name.starts_with("msg") || name.starts_with("sem");
}

bool is_of_network(const Row& row) {
    return is_in({"socket", "socketpair", "bind", "listen", "accept", "accept4", "connect",
                  "getsockname", "getpeername", "sendto", "recvfrom", "sendmsg", "recvmsg",
                  "sendmmsg", "recvmmsg", "shutdown", "setsockopt", "getsockopt", "sendfile"},
                 row);
}

bool is_of_clocks(const Row& row) {
    return std::string_view(row.name).starts_with("clock_") ||
           is_in({"gettimeofday", "settimeofday", "time", "adjtimex"}, row);
}

bool is_of_users(const Row& row) {
    const std::string_view name = row.name;
    return name.ends_with("uid") || name.ends_with("gid") || name.ends_with("groups") ||
           is_in({"capget", "capset", "prctl"}, row);
}

struct CallClass {
    const char* name;
    bool (*has)(const Row& row);
};
constexpr std::array call_classes{
    CallClass{"file", takes_file_name},  CallClass{"desc", is_of_descriptors},
    CallClass{"memory", is_of_memory},   CallClass{"process", is_of_processes},
    CallClass{"signal", is_of_signals},  CallClass{"ipc", is_of_ipc},
    CallClass{"network", is_of_network}, CallClass{"net", is_of_network},
    CallClass{"clock", is_of_clocks},    CallClass{"creds", is_of_users},
};

// What is no call.
struct EventClass {
    const char* name;
    __u8 gpr_trace_order::*on;
};
constexpr std::array event_classes{EventClass{"crossing", &gpr_trace_order::crossings},
                                   EventClass{"page", &gpr_trace_order::pages}};

void set_call(gpr_trace_order& order, uint32_t number, bool on) {
    if (number >= GPR_TRACED_CALLS) return;
    const uint64_t bit = uint64_t{1} << (number % 64);
    __u64& word = order.wanted[number / 64];
    word = on ? word | bit : word & ~bit;
}

size_t set_calls(gpr_trace_order& order, bool on, const std::function<bool(const Row&)>& has) {
    size_t count = 0;
    for (const Row* row : all_rows()) {
        if (!has(*row)) continue;
        set_call(order, row->number, on);
        count++;
    }
    return count;
}

Failure unknown_word(const std::string& word) {
    const std::vector<std::string> known = trace_words();
    const std::string nearest =
        nearest_word(word, std::vector<std::string_view>(known.begin(), known.end()));
    return fail(fmt::format("-e trace={} names no call and no class of calls{}", word,
                            nearest.empty() ? "; 'gpr syscalls' lists calls"
                                            : fmt::format("; did you mean {}?", nearest)));
}

Result<> set_word(gpr_trace_order& order, std::string word, bool on) {
    const bool may_lack = word.starts_with('?');  // strace: no error if there is no such call
    if (may_lack) word.erase(0, 1);
    if (word.starts_with('/')) {
        try {
            const std::regex wanted(word.substr(1), std::regex::extended);
            set_calls(order, on, [&](const Row& r) { return std::regex_search(r.name, wanted); });
        } catch (const std::regex_error&) {
            return fail(fmt::format("-e trace={} is no regular expression", word));
        }
        return {};
    }
    const std::string name = word.starts_with('%') ? word.substr(1) : word;
    for (const EventClass& each : event_classes) {
        if (name != each.name) continue;
        order.*each.on = on;
        return {};
    }
    const auto of_class = std::ranges::find(call_classes, name, &CallClass::name);
    const bool is_call = !word.starts_with('%') &&
                         set_calls(order, on, [&](const Row& row) { return word == row.name; }) > 0;
    if (is_call) return {};
    if (of_class == call_classes.end()) return may_lack ? Result<>{} : unknown_word(word);
    set_calls(order, on, of_class->has);
    return {};
}

std::vector<std::string> words_of(std::string_view list) {
    std::vector<std::string> words;
    while (!list.empty()) {
        const size_t end = std::min(list.find(','), list.size());
        if (end > 0) words.emplace_back(list.substr(0, end));
        list.remove_prefix(std::min(end + 1, list.size()));
    }
    return words;
}

void set_all(gpr_trace_order& order, bool on) {
    for (__u64& word : order.wanted) word = on ? ~__u64{0} : 0;
    order.crossings = on;
}

Result<> choose_calls(gpr_trace_order& order, std::string list) {
    const bool negated = list.starts_with('!');
    if (negated) list.erase(0, 1);
    set_all(order, negated);
    if (list == "all" || list == "none") {
        set_all(order, (list == "all") != negated);
        return {};
    }
    for (std::string& word : words_of(list)) GPR_CHECK(set_word(order, std::move(word), !negated));
    return {};
}

int signal_of(std::string name) {
    if (!name.starts_with("SIG")) name = "SIG" + name;
    for (int signal = 1; signal <= 64; signal++) {
        if (signal_name(signal) == name) return signal;
    }
    return 0;
}

Result<> choose_signals(TraceChoice& choice, std::string list) {
    const bool negated = list.starts_with('!');
    if (negated) list.erase(0, 1);
    std::set<int> named;
    if (list == "all" || list == "none") {
        choice.order.signals = (list == "all") != negated;
        return {};
    }
    for (const std::string& word : words_of(list)) {
        const int signal = signal_of(word);
        if (signal == 0) return fail(fmt::format("-e signal={} names no signal", word));
        named.insert(signal);
    }
    for (int signal = 1; signal <= 64; signal++) {
        if (named.contains(signal) == negated) choice.hidden_signals.insert(signal);
    }
    return {};
}

Result<> choose(TraceChoice& choice, const std::string& expression) {
    const size_t equals = expression.find('=');
    const std::string key = equals == std::string::npos ? "trace" : expression.substr(0, equals);
    const std::string value =
        equals == std::string::npos ? expression : expression.substr(equals + 1);
    if (key == "trace" || key == "t") return choose_calls(choice.order, value);
    if (key == "signal" || key == "signals" || key == "s") return choose_signals(choice, value);
    return fail(fmt::format("-e {} is not understood; there are trace= and signal=", expression));
}

}  // namespace

Result<TraceChoice> trace_choice(const std::vector<std::string>& expressions,
                                 const std::string& bytes, bool stacks) {
    TraceChoice choice;
    set_all(choice.order, true);
    choice.order.signals = 1;
    choice.order.string_bytes = usual_string_bytes;
    choice.order.stack_bytes = stacks ? stack_bytes : 0;
    if (bytes == "0") choice.order.string_bytes = 0;
    if (!bytes.empty() && bytes != "0") {
        GPR_TRY(const uint64_t wanted, parse_count(bytes, "-s"));
        if (wanted > GPR_TRACED_BYTES_MAX) {
            return fail(fmt::format("-s {} is too long; at most {} bytes of a string can be shown",
                                    bytes, GPR_TRACED_BYTES_MAX));
        }
        choice.order.string_bytes = static_cast<uint32_t>(wanted);
    }
    for (const std::string& each : expressions) GPR_CHECK(choose(choice, each));
    return choice;
}

void want_execve(TraceChoice& choice) {
    choice.hides_execve = (choice.order.wanted[0] >> SYS_execve & 1) == 0;
    set_call(choice.order, SYS_execve, true);
}

std::string order_digits(const gpr_trace_order& order) {
    std::string digits;
    for (const std::byte byte : std::as_bytes(std::span(&order, 1))) {
        digits += fmt::format("{:02x}", static_cast<unsigned>(byte));
    }
    return digits;
}

std::vector<std::string> trace_words() {
    std::vector<std::string> words{"all", "none"};
    for (const CallClass& each : call_classes) words.push_back("%" + std::string(each.name));
    for (const EventClass& each : event_classes) words.push_back("%" + std::string(each.name));
    for (const Row* row : all_rows()) words.emplace_back(row->name);
    return words;
}

}  // namespace gpr
