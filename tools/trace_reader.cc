#include "tools/trace_reader.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace gpr {

namespace {

constexpr int quiet_ms = 100;  // after which calls that have only begun are shown
constexpr std::chrono::milliseconds between_looks_at_code{200};

volatile std::sig_atomic_t is_to_end = 0;  // a handler can reach nothing else

void end_soon(int) { is_to_end = 1; }

}  // namespace

TraceReader::TraceReader(Fd stream, std::FILE* out, const TraceChoice& choice,
                         const TraceStyle& style, bool counts)
    : stream_(std::move(stream)),
      out_(out),
      choice_(choice),
      counts_(counts),
      types_([this]() -> std::optional<KernelTypes> {
          auto types = KernelTypes::load();
          if (types) return std::move(*types);
          no_types_ = types.error().message();
          return std::nullopt;
      }()),
      printer_(out, style, types_ ? &*types_ : nullptr,
               [this](pid_t pid, bool again) { return symbols_of(pid, again); }),
      story_(listener()) {}

void TraceReader::end_at_signals() {
    struct sigaction action {};
    action.sa_handler = end_soon;
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
}

bool TraceReader::shows(const TracedEvent& event) const {
    return !choice_.hidden_signals.contains(static_cast<int>(event.about.number));
}

TraceStory::Listener TraceReader::listener() {
    TraceStory::Listener tell;
    tell.call_ended = [this](const TracedThread& thread, uint64_t now) {
        if (choice_.hides_execve && thread.call.number == SYS_execve) return;
        if (counts_) {
            summary_.add(thread.call, now);
        } else {
            printer_.call(story_, thread, now);
        }
    };
    tell.signal = [this](const TracedThread& thread, const TracedEvent& event) {
        if (!counts_ && shows(event)) printer_.signal(story_, thread, event);
    };
    tell.crossing = [this](const TracedThread& thread, const TracedEvent& event) {
        if (!counts_) printer_.crossing(story_, thread, event);
    };
    tell.page = [this](const TracedThread& thread, const TracedEvent& event) {
        if (!counts_) printer_.page(story_, thread, event);
    };
    tell.thread_ended = [this](const TracedThread& thread, const TracedEvent& event) {
        code_.erase(thread.tid);
        if (!counts_) printer_.end(story_, thread, event);
    };
    tell.lost = [this](unsigned node, uint64_t count) {
        fmt::print(out_,
                   "gpr: {} events of {} are missing here: they came faster than they were "
                   "read; -e trace=SET makes them fewer\n",
                   count, story_.node_name(node));
    };
    tell.over = [this] { is_over_ = true; };
    tell.refused = [this](unsigned node, const std::string& why) {
        fmt::print(out_, "gpr: at {} only calls that gpr handles itself are seen: {}\n",
                   story_.node_name(node), why);
    };
    return tell;
}

// Of a process that has gone meanwhile, what is known already.
const ProcessSymbols* TraceReader::symbols_of(pid_t pid, bool again) {
    std::unique_ptr<Code>& code = code_[pid];
    const auto now = std::chrono::steady_clock::now();
    if (!code) {
        code = std::make_unique<Code>();
    } else if (!again || now < code->asked_again_from) {
        return code->symbols ? &*code->symbols : nullptr;
    }
    if (!session_ && program_ != 0) {
        if (auto session = session_with(program_)) session_ = std::move(*session);
    }
    if (!session_) return nullptr;
    const nlohmann::json about{{"want", "mappings"}, {"pid", pid}, {"resident", false}};
    const auto mappings = session_->client.ask(about);
    auto symbols = mappings ? ProcessSymbols::of(object_at(*mappings, "mappings"))
                            : tl::make_unexpected(mappings.error());
    if (symbols) code->symbols.emplace(std::move(*symbols));
    const auto after = std::chrono::steady_clock::now();
    const auto pause =
        std::max<std::chrono::nanoseconds>(between_looks_at_code, 10 * (after - now));
    code->asked_again_from = after + pause;
    return code->symbols ? &*code->symbols : nullptr;
}

Result<> TraceReader::take_what_is_complete(std::string& unread) {
    std::string_view rest = unread;
    bool broken = false;
    while (auto event = TracedEvent::take(rest, broken)) story_.take(std::move(*event));
    unread.erase(0, unread.size() - rest.size());
    if (broken) return fail("the session's events are not understood; is its gpr another?");
    return {};
}

Result<> TraceReader::run() {
    if (!no_types_.empty()) {
        fmt::print(out_, "gpr: structures are shown as addresses: {}\n", no_types_);
    }
    std::string unread;
    std::array<char, 1 << 16> bytes{};
    Result<> result;
    bool has_begun = false;
    while (is_to_end == 0) {
        pollfd polled{stream_.get(), POLLIN, 0};
        const int ready = poll(&polled, 1, quiet_ms);
        if (ready == 0 && !counts_) {
            printer_.show_begun(story_);
            if (!printer_.flush()) break;
        }
        if (ready <= 0) continue;
        const ssize_t got = recv(stream_.get(), bytes.data(), bytes.size(), 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        has_begun = true;
        unread.append(bytes.data(), static_cast<size_t>(got));
        result = take_what_is_complete(unread);
        if (!result || !printer_.flush()) break;
    }
    stream_.reset();
    // A session that could not begin has said so itself.
    if (has_begun && result && is_to_end == 0 && !is_over_) {
        fmt::print(out_,
                   "gpr: the session's last events are missing: it was killed, or they came faster "
                   "than they were read; -e trace=SET makes them fewer\n");
    }
    if (counts_) std::fputs(summary_.text().c_str(), out_);
    printer_.flush();
    return result;
}

}  // namespace gpr
