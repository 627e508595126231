#include "monitor/launch/attachable.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/fd.h"
#include "monitor/node/own_namespaces.h"
#include "monitor/node/process_names.h"
#include "monitor/tracee/process_stat.h"
#include "monitor/tracee/remote_memory_raw.h"

namespace gpr {

namespace {

// The fields of /proc/PID/status by name; empty if there is no such process.
using Status = std::map<std::string, std::string>;

Status status_of(pid_t pid) {
    Status status;
    std::ifstream in(fmt::format("/proc/{}/status", pid));
    for (std::string line; std::getline(in, line);) {
        const size_t colon = line.find(":\t");
        if (colon != std::string::npos) status[line.substr(0, colon)] = line.substr(colon + 2);
    }
    return status;
}

int number_in(const Status& status, const std::string& name) {
    const auto found = status.find(name);
    return found == status.end() ? 0 : std::atoi(found->second.c_str());
}

size_t words_in(const Status& status, const std::string& name) {
    const auto found = status.find(name);
    if (found == status.end()) return 0;
    std::istringstream words(found->second);
    size_t count = 0;
    for (std::string word; words >> word;) count++;
    return count;
}

std::string named(pid_t pid) { return fmt::format("process {} ({})", pid, command_name(pid)); }

Result<> check_not_ours(pid_t pid) {
    std::array<struct stat, 2> files{};
    const bool known = stat("/proc/self/exe", files.data()) == 0 &&
                       stat(fmt::format("/proc/{}/exe", pid).c_str(), &files[1]) == 0;
    if (known && files[0].st_ino == files[1].st_ino && files[0].st_dev == files[1].st_dev) {
        return fail(
            fmt::format("{} is gpr itself; attach to the program that it runs", named(pid)));
    }
    return {};
}

Result<> check_tracer(pid_t pid, const Status& status) {
    const int tracer = number_in(status, "TracerPid");
    if (tracer == 0) return {};
    if (command_name(tracer) == monitor_process_name) {
        return fail(fmt::format("{} is in a session of gpr already (its monitor is process {})",
                                named(pid), tracer));
    }
    return fail(
        fmt::format("{} is traced already, by {}; end that first", named(pid), named(tracer)));
}

// Judges by the executable, because any process may contain 32-bit code.
Result<> check_64_bit(pid_t pid) {
    const Fd file(open(fmt::format("/proc/{}/exe", pid).c_str(), O_RDONLY | O_CLOEXEC));
    Elf64_Ehdr header{};
    if (!file || pread(file.get(), &header, sizeof header, 0) != sizeof header) return {};
    if (header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == EM_X86_64) return {};
    return fail(fmt::format("{} is a 32-bit program; gpr splits x86-64 programs only", named(pid)));
}

// Refuses a process that shares its memory, as after clone(CLONE_VM), or vfork until the exec.
Result<> check_shared(pid_t pid) {
    std::vector<pid_t> relatives{parent_of(pid)};
    std::error_code error;
    for (const auto& task :
         std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), error)) {
        std::ifstream children(task.path() / "children");
        for (pid_t child = 0; children >> child;) relatives.push_back(child);
    }
    for (const pid_t other : relatives) {
        const bool shares = other > 0 && syscall(SYS_kcmp, pid, other, KCMP_VM, 0, 0) == 0;
        if (!shares) continue;
        return fail(fmt::format(
            "{} shares its memory with {}; attach it when that has ended or runs another program",
            named(pid), named(other)));
    }
    return {};
}

}  // namespace

Result<> check_attachable(pid_t pid) {
    const Status status = status_of(pid);
    if (status.empty()) {
        return fail(fmt::format("there is no process {}; 'ps' lists them", pid));
    }
    if (const int process = number_in(status, "Tgid"); process != pid) {
        return fail(fmt::format("{} is a thread of process {}; attach to that", pid, process));
    }
    if (pid == getpid() || number_in(status, "Kthread") != 0 || words_in(status, "VmSize") == 0) {
        const bool ended = status.at("State").starts_with('Z');
        return fail(fmt::format(
            "{} {}", named(pid),
            ended ? "has ended; its parent has yet to wait for it" : "is not a program's"));
    }
    GPR_CHECK(check_not_ours(pid));
    GPR_CHECK(check_tracer(pid, status));
    GPR_CHECK(check_64_bit(pid));
    GPR_CHECK(check_shared(pid));
    if (number_in(status, "Seccomp") != 0) {
        return fail(fmt::format(
            "{} has seccomp filters of its own, which cannot be taken along; begin it under "
            "'gpr exec'",
            named(pid)));
    }
    for (const auto& [resource, name] : {std::pair{RLIMIT_AS, "its address space (ulimit -v)"},
                                         std::pair{RLIMIT_DATA, "its data (ulimit -d)"}}) {
        const auto limit = limit_of(pid, resource);
        if (!limit || limit->rlim_cur == RLIM_INFINITY) continue;
        return fail(fmt::format(
            "{} has a limit of {}, within which gpr's own part may have no room; lift it with "
            "'prlimit', or begin it under 'gpr exec'",
            named(pid), name));
    }
    if (words_in(status, "NSpid") > 1) {
        return fail(fmt::format(
            "{} is in a PID namespace of its own; run gpr in there, or begin it under 'gpr exec'",
            named(pid)));
    }
    if (namespaces_of(pid).time != namespaces_of(getpid()).time) {
        return fail(
            fmt::format("{} is in another time namespace; run gpr in there, or begin it "
                        "under 'gpr exec'",
                        named(pid)));
    }
    // Such a process can begin no thread, and gpr needs three.
    if (namespaces_of(pid, true) != namespaces_of(pid)) {
        return fail(
            fmt::format("{} has put its children into a PID or time namespace of their own "
                        "(unshare); begin it under 'gpr exec'",
                        named(pid)));
    }
    return {};
}

Failure has_cpu_timer(pid_t pid) {
    return fail(fmt::format(
        "{} has a timer on CPU time, which would not count what is used at the acceptor; begin it "
        "under 'gpr exec'",
        named(pid)));
}

Result<pid_t> monitor_of(pid_t pid) {
    const Status status = status_of(pid);
    if (status.empty()) return fail(fmt::format("there is no process {}", pid));
    const int tracer = number_in(status, "TracerPid");
    if (tracer == 0 || command_name(tracer) != monitor_process_name) {
        return fail(fmt::format("{} is in no session of gpr", named(pid)));
    }
    return tracer;
}

Result<> check_memory(pid_t pid, const std::vector<MappingFlags>& memory) {
    if (const std::string what = what_stays(memory); !what.empty()) {
        return fail(
            fmt::format("{} has memory that cannot be attached: {}; begin it under 'gpr exec'",
                        named(pid), what));
    }
    return {};
}

Failure explain_refusal(pid_t pid, const Error& refusal) {
    if (refusal.code != EPERM) return fail(refusal.code, refusal.what);
    const Status status = status_of(pid);
    if (auto tracer = check_tracer(pid, status); !tracer) return Failure(tracer.error());
    const int user = number_in(status, "Uid");
    if (geteuid() != 0 && static_cast<uid_t>(user) != geteuid()) {
        return fail(fmt::format("{} is of another user (uid {}); run gpr as that user or as root",
                                named(pid), user));
    }
    struct stat owner {};
    const bool dumpable = stat(fmt::format("/proc/{}/environ", pid).c_str(), &owner) != 0 ||
                          owner.st_uid == static_cast<uid_t>(user);
    if (!dumpable) {
        return fail(
            fmt::format("{} is a set-user-ID program, or does not want to be looked at "
                        "(PR_SET_DUMPABLE); run gpr as root",
                        named(pid)));
    }
    int scope = 0;
    std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
    if (scope > 0) {
        return fail(fmt::format(
            "Yama keeps users from tracing {} (kernel.yama.ptrace_scope is {}); {}", named(pid),
            scope,
            scope == 3 ? "nothing but a reboot changes that"
                       : "run gpr as root, or set it to 0: sysctl kernel.yama.ptrace_scope=0"));
    }
    return fail(refusal.code,
                fmt::format("the kernel does not let {} be traced; run gpr as root", named(pid)));
}

}  // namespace gpr
