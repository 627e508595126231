// `gpr trace`: what a split program does, on all of its nodes, as strace shows it of an ordinary
// one.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "base/fd.h"
#include "monitor/launch/run.h"
#include "tools/exec_command.h"
#include "tools/session_options.h"
#include "tools/sessions.h"
#include "tools/trace_options.h"
#include "tools/trace_reader.h"

namespace gpr {

namespace {

std::vector<Setting> trace_settings() {
    std::vector<Setting> settings{
        {"pid", SettingKind::text, "PID", "trace the session that has this process", false, 'p'},
        {"expr", SettingKind::list, "EXPR",
         "what is shown: trace=SET of calls and classes, signal=SET", false, 'e'},
        {"output", SettingKind::text, "FILE", "write to FILE instead of standard error", false,
         'o'},
        {"summary", SettingKind::toggle, "", "only count calls, errors and time", false, 'c'},
        {"string-limit", SettingKind::text, "COUNT", "bytes shown of strings and buffers (32)",
         false, 's'},
        {"syscall-times", SettingKind::toggle, "", "how long each call took", false, 'T'},
        {"timestamps", SettingKind::text, "FORM",
         "with the time: second (-t), micro (-tt), epoch (-ttt), relative (-r)"},
        {"decode-fds", SettingKind::toggle, "", "with the files of descriptors", false, 'y'},
        {"stack-trace", SettingKind::toggle, "", "with the calls in which each was made", false,
         'k'},
        {"no-abbrev", SettingKind::toggle, "", "every member of structures", false, 'v'},
        {"quiet", SettingKind::toggle, "", "without the ends of threads", false, 'q'},
        {"follow-forks", SettingKind::toggle, "", "accepted: all processes are traced", false,
         'f'}};
    const std::vector<Setting> of_session = session_settings();
    settings.insert(settings.end(), of_session.begin(), of_session.end());
    return settings;
}

// -t, -tt, -ttt and -r are one setting, and -ff is -f.
std::string written_out(const std::string& word) {
    if (word == "-t") return "--timestamps=second";
    if (word == "-tt") return "--timestamps=micro";
    if (word == "-ttt") return "--timestamps=epoch";
    if (word == "-r") return "--timestamps=relative";
    if (word == "-ff") return "-f";
    return word == "-qq" ? "-q" : word;
}

Words written_out(const Words& arguments) {
    Words words = arguments;
    const std::vector<Setting> settings = trace_settings();
    const size_t options = cut_program(settings, arguments).options.size();
    for (size_t i = 0; i < options; i++) words[i] = written_out(words[i]);
    return words;
}

Result<TraceTime> time_form(const std::string& form) {
    static const std::map<std::string, TraceTime> forms{{"", TraceTime::none},
                                                        {"second", TraceTime::second},
                                                        {"micro", TraceTime::microsecond},
                                                        {"epoch", TraceTime::epoch},
                                                        {"relative", TraceTime::since_last}};
    const auto found = forms.find(form);
    if (found != forms.end()) return found->second;
    return fail(fmt::format(
        "--timestamps {} is not known; there are second, micro, epoch and relative", form));
}

bool is_number(const std::string& word) {
    return !word.empty() &&
           std::ranges::all_of(word, [](unsigned char c) { return std::isdigit(c); });
}

struct Trace {
    TraceChoice choice;
    TraceStyle style;
    bool counts = false;
    std::string output;
};

Result<Trace> trace_of(const Settings& asked) {
    Trace trace;
    trace.style.stacks = asked.toggle("stack-trace");
    GPR_TRY(trace.choice,
            trace_choice(asked.list("expr"), asked.text("string-limit"), trace.style.stacks));
    trace.style.string_limit = trace.choice.order.string_bytes;
    GPR_TRY(trace.style.time, time_form(asked.text("timestamps")));
    trace.style.call_times = asked.toggle("syscall-times");
    trace.style.file_names = asked.toggle("decode-fds");
    trace.style.whole = asked.toggle("no-abbrev");
    trace.style.quiet = asked.toggle("quiet");
    trace.counts = asked.toggle("summary");
    trace.output = asked.text("output");
    return trace;
}

// Closed when this ends.
using Output = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
Result<Output> open_output(const std::string& path) {
    const int fd = path.empty()
                       ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)
                       : open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    std::FILE* file = fd < 0 ? nullptr : fdopen(fd, "w");
    if (!file)
        return fail(errno, fmt::format("cannot write to {}", path.empty() ? "stderr" : path));
    return Output(file, std::fclose);
}

int trace_session(const Trace& trace, pid_t pid) {
    const auto session = session_with(pid);
    if (!session) {
        complain(session.error().message());
        return exit_failed;
    }
    auto output = open_output(trace.output);
    auto stream = output ? session->client.trace(order_digits(trace.choice.order))
                         : tl::make_unexpected(output.error());
    if (!stream) {
        complain(stream.error().message());
        return exit_failed;
    }
    TraceReader reader(std::move(*stream), output->get(), trace.choice, trace.style, trace.counts);
    reader.use_symbols_of(*session);
    reader.end_at_signals();
    const auto read = reader.run();
    if (!read) complain(read.error().message());
    return read ? 0 : exit_failed;
}

// As the program ended, so does this command.
int end_as(int status) {
    if (WIFSIGNALED(status)) {
        std::signal(WTERMSIG(status), SIG_DFL);
        std::raise(WTERMSIG(status));
        return 128 + WTERMSIG(status);
    }
    return WEXITSTATUS(status);
}

int trace_program(Trace trace, const ParsedCommand& parsed) {
    want_execve(trace.choice);
    auto options = make_exec_options(parsed, [](const char* name) { return getenv(name); });
    if (!options) {
        complain(options.error().error.message());
        return options.error().status;
    }
    int ends[2];
    auto output = open_output(trace.output);
    if (!output || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        complain(output ? "cannot make a socket pair" : output.error().message());
        return exit_gpr_failed;
    }
    Fd ours(ends[0]), theirs(ends[1]);
    // The monitor reads it before the program begins.
    const gpr_trace_order& order = trace.choice.order;
    if (send(ours.get(), &order, sizeof order, MSG_NOSIGNAL) != sizeof order)
        return exit_gpr_failed;
    announce_seed(*options);
    const pid_t program = fork();
    if (program == 0) {
        output->reset();
        ours.reset();
        _exit(run_exec(*options, start_local_acceptor, GdbWanted{}, theirs.release()));
    }
    theirs.reset();
    if (program < 0) {
        complain("cannot make a process for the program");
        return exit_gpr_failed;
    }
    // Keys of the terminal are for the program.
    for (const int signal : {SIGINT, SIGQUIT, SIGTSTP}) std::signal(signal, SIG_IGN);
    TraceReader reader(std::move(ours), output->get(), trace.choice, trace.style, trace.counts);
    reader.begin_with(program);
    const auto read = reader.run();
    if (!read) complain(read.error().message());
    int status = 0;
    while (waitpid(program, &status, 0) < 0 && errno == EINTR) {
    }
    output->reset();
    return end_as(status);
}

}  // namespace

const CommandSpec& trace_spec() {
    static const CommandSpec spec{
        "trace",
        "[OPTION]... -p PID | SESSION\n       gpr trace [OPTION]... [--] PROGRAM [ARG]...",
        "Show the system calls, signals and crossings of a split program on all of its nodes, as\n"
        "strace does: of a session that runs, or of PROGRAM from its first call on, with the "
        "options of\n'gpr exec'.",
        trace_settings(),
        true,
        0,
        "Each line begins with the thread and the node where it is; NODE>home: the call is made at "
        "home\nfor a thread that is at NODE. The words of trace=SET are calls, /REGEX, classes "
        "(%file, %desc,\n%process, %network, %memory, %signal, %ipc, %clock, %creds) and "
        "%crossing and\n%page (pages that threads wait for, and that come); '!' before them means "
        "all others. Without\nit there are all calls and crossings.\n\n"
        "exit status: with -p 0, or 1 if the session cannot be traced; else the program's, as of "
        "'gpr exec'"};
    return spec;
}

int trace_main(const Words& arguments) {
    return run_observer(trace_spec(), written_out(arguments), [](const ParsedCommand& parsed) {
        const Settings asked({parsed.flags});
        const auto trace = trace_of(asked);
        if (!trace) {
            complain(trace.error().message());
            return exit_usage;
        }
        std::string named = asked.text("pid");
        const bool is_session = parsed.program.size() == 1 && is_number(parsed.program.front());
        if (named.empty() && is_session) named = parsed.program.front();
        if (named.empty()) return trace_program(*trace, parsed);
        const auto pid = parse_pid(named);
        const bool is_alone = parsed.program.empty() || (is_session && named == parsed.program[0]);
        if (!pid || !is_alone) {
            complain(pid ? "either a process or a program is traced, not both"
                         : pid.error().message() + "; 'gpr ps' lists sessions");
            return exit_usage;
        }
        return trace_session(*trace, *pid);
    });
}

}  // namespace gpr
