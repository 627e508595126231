#include "tools/trace_printer.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "base/address.h"
#include "base/terminal_text.h"
#include "tools/call_values.h"
#include "tools/flag_names.h"
#include "tools/stack_walk.h"

namespace gpr {

namespace {

constexpr int64_t second_ns = 1'000'000'000;
constexpr size_t most_variables = 2;  // of a page

int64_t now_of(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return now.tv_sec * second_ns + now.tv_nsec;
}

std::string link_of(const std::string& path) {
    std::array<char, 4096> target{};
    const ssize_t got = readlink(path.c_str(), target.data(), target.size());
    return got <= 0 ? "" : without_controls(std::string(target.data(), static_cast<size_t>(got)));
}

}  // namespace

TracePrinter::TracePrinter(std::FILE* out, const TraceStyle& style, const KernelTypes* types,
                           Symbols symbols)
    : out_(out),
      style_(style),
      words_(types, style.whole, style.string_limit),
      symbols_(std::move(symbols)),
      wall_clock_ns_(now_of(CLOCK_REALTIME) - now_of(CLOCK_MONOTONIC)) {}

std::string TracePrinter::time_text(uint64_t time_ns) {
    const int64_t at = static_cast<int64_t>(time_ns) + wall_clock_ns_;
    const int64_t micros = at % second_ns / 1000;
    const std::tm local = fmt::localtime(static_cast<time_t>(at / second_ns));
    switch (style_.time) {
        case TraceTime::none: return "";
        case TraceTime::second: return fmt::format("{:%H:%M:%S} ", local);
        case TraceTime::microsecond: return fmt::format("{:%H:%M:%S}.{:06} ", local, micros);
        case TraceTime::epoch: return fmt::format("{}.{:06} ", at / second_ns, micros);
        case TraceTime::since_last: break;
    }
    // Clocks of two nodes differ by some microseconds.
    const uint64_t before = last_ns_ == 0 ? time_ns : std::min(last_ns_, time_ns);
    last_ns_ = std::max(last_ns_, time_ns);
    return fmt::format("{:6}.{:06} ", (time_ns - before) / second_ns,
                       (time_ns - before) % second_ns / 1000);
}

std::string TracePrinter::prefix(const TraceStory& story, const TracedThread& thread,
                                 bool forwarded, uint64_t time_ns) {
    std::string node = story.node_name(thread.node);
    if (forwarded) node += ">" + story.node_name(0);
    return fmt::format("{:<7} {:<{}}  {}", thread.tid, node, story.longest_node_name(),
                       time_text(time_ns));
}

CallText::FileName TracePrinter::names_for(pid_t pid) {
    if (!style_.file_names) return {};
    return [this, pid](uint64_t fd) {
        const auto known = files_.find({pid, fd});
        if (known != files_.end()) return known->second;
        return link_of(fmt::format("/proc/{}/fd/{}", pid, fd));
    };
}

// What a call has opened may be closed again before its line is written.
void TracePrinter::note_files(const TracedThread& thread) {
    if (!style_.file_names) return;
    const TracedCall& call = thread.call;
    const std::string name = call_name(call.number);
    const bool succeeded = call.result && *call.result >= 0;
    if (name == "close" || name == "dup2" || name == "dup3") {
        files_.erase({thread.pid, name == "close" ? call.args[0] : call.args[1]});
    } else if (succeeded && (name == "open" || name == "openat" || name == "creat")) {
        const unsigned at = name == "openat" ? 1 : 0;
        const TracedPart* path = call.part(at, GPR_PART_STRING, false);
        if (!path) path = call.part(at, GPR_PART_STRING, true);
        const auto fd = static_cast<uint64_t>(*call.result);
        const std::string link = link_of(fmt::format("/proc/{}/fd/{}", thread.pid, fd));
        if (path && path->bytes.starts_with('/')) {
            files_[{thread.pid, fd}] = without_controls(path->bytes);
        } else if (!link.empty()) {
            files_[{thread.pid, fd}] = link;
        } else {
            files_.erase({thread.pid, fd});
        }
    }
}

void TracePrinter::call(const TraceStory& story, const TracedThread& thread, uint64_t now_ns) {
    const TracedCall& call = thread.call;
    std::string line;
    if (call.is_begun_shown) {
        line = fmt::format("<... {} resumed>", call_name(call.number));
        // What it has left in memory is known only now.
        const std::string text = words_.begin(call);
        line += text.substr(std::min(text.size(), text.find('(')));
    } else {
        line = words_.begin(call, names_for(thread.pid));
    }
    note_files(thread);
    line += fmt::format(") = {}", CallText::result(call));
    if (style_.file_names && call.result && *call.result >= 0) {
        const auto known = files_.find({thread.pid, static_cast<uint64_t>(*call.result)});
        const std::string name = call_name(call.number);
        if (known != files_.end() && (name.starts_with("open") || name == "creat")) {
            line += fmt::format("<{}>", known->second);
        }
    }
    if (style_.call_times && call.began_ns != 0) {
        const uint64_t took = now_ns > call.began_ns ? now_ns - call.began_ns : 0;
        line += fmt::format(" <{}.{:06}>", took / second_ns, took % second_ns / 1000);
    }
    const uint64_t began = call.began_ns == 0 || call.is_begun_shown ? now_ns : call.began_ns;
    fmt::print(out_, "{}{}\n", prefix(story, thread, call.forwarded, began), line);
    if (style_.stacks) std::fputs(stack_of(thread).c_str(), out_);
}

void TracePrinter::show_begun(TraceStory& story) {
    for (TracedThread* thread : story.in_calls()) {
        TracedCall& call = thread->call;
        if (std::exchange(call.is_begun_shown, true)) continue;
        fmt::print(out_, "{}{} <unfinished ...>\n",
                   prefix(story, *thread, call.forwarded, call.began_ns),
                   words_.begin(call, names_for(thread->pid)));
    }
}

void TracePrinter::signal(const TraceStory& story, const TracedThread& thread,
                          const TracedEvent& event) {
    const auto signal = static_cast<int>(event.about.number);
    const std::string info =
        event.parts.empty() ? "" : " " + signal_info_text(event.parts.front().bytes);
    fmt::print(out_, "{}--- {}{} ---\n", prefix(story, thread, false, event.about.time_ns),
               signal_name(signal), info);
}

std::string TracePrinter::code_at(pid_t pid, uint64_t address) {
    const ProcessSymbols* symbols = symbols_ ? symbols_(pid, false) : nullptr;
    const CallFrame frame = symbols ? symbols->code_at(address, false) : CallFrame{};
    if (!frame.symbol.empty()) return fmt::format("{:#x} ({})", address, frame.symbol);
    if (!frame.file.empty()) return fmt::format("{:#x} ({})", address, frame.file);
    return fmt::format("{:#x}", address);
}

void TracePrinter::crossing(const TraceStory& story, const TracedThread& thread,
                            const TracedEvent& event) {
    const auto from = static_cast<unsigned>(event.about.args[0]);
    const auto to = static_cast<unsigned>(event.about.args[1]);
    fmt::print(out_, "{}>>> crosses from {} to {} at {}\n",
               prefix(story, thread, false, event.about.time_ns), story.node_name(from),
               story.node_name(to), code_at(thread.pid, event.about.ip));
}

std::string TracePrinter::page_at(pid_t pid, uint64_t address) {
    const ProcessSymbols* symbols = nullptr;
    std::string file;
    for (const bool again : {false, true}) {  // what has been mapped since then is not known yet
        if (symbols_ && file.empty()) symbols = symbols_(pid, again);
        if (symbols && file.empty()) file = symbols->file_at(address);
    }
    if (file.empty()) return fmt::format("{:#x}", address);
    std::string names = file.substr(file.rfind('/') + 1);
    const auto variables = symbols->variables_in({{address}, {address + page_size}});
    for (size_t i = 0; i < variables.size() && i < most_variables; i++) names += " " + variables[i];
    return fmt::format("{:#x} ({})", address, names);
}

void TracePrinter::page(const TraceStory& story, const TracedThread& thread,
                        const TracedEvent& event) {
    const gpr_trace_event& about = event.about;
    // What comes for a thread that has left is told of the node where it has come.
    TracedThread there = thread;
    there.node = about.node;
    const std::string begin = prefix(story, there, false, about.time_ns);
    if (about.kind == GPR_TRACE_MISS) {
        fmt::print(out_, "{}~~~ waits for the page {} to {}\n", begin,
                   page_at(thread.pid, about.args[0]), about.args[1] ? "write" : "read");
        return;
    }
    const char* right = about.args[2] ? "to write" : "to read";
    const std::string_view what = about.args[3] == GPR_PAGES_RIGHT  ? ", whose content was here"
                                  : about.args[3] == GPR_PAGES_ZERO ? ", of zeros"
                                                                    : "";
    const uint64_t waited = about.args[4];
    if (about.args[5] == 0) {
        fmt::print(out_, "{}~~~ gets {} {} at {} {}{}, unasked\n", begin, about.args[1],
                   about.args[1] == 1 ? "page" : "pages", page_at(thread.pid, about.args[0]), right,
                   what);
        return;
    }
    fmt::print(out_, "{}~~~ gets the page {} {}{}", begin, page_at(thread.pid, about.args[5]),
               right, what);
    if (about.args[1] > 1) fmt::print(out_, ", with {} beside it", about.args[1] - 1);
    fmt::print(out_, " <{}.{:06}>\n", waited / second_ns, waited % second_ns / 1000);
}

void TracePrinter::end(const TraceStory& story, const TracedThread& thread,
                       const TracedEvent& event) {
    if (style_.quiet) return;
    fmt::print(out_, "{}{}\n", prefix(story, thread, false, event.about.time_ns),
               end_text(static_cast<uint32_t>(event.about.result)));
}

std::string TracePrinter::stack_of(const TracedThread& thread) {
    std::vector<CallFrame> frames;
    for (const bool again : {false, true}) {
        const ProcessSymbols* symbols = symbols_ ? symbols_(thread.pid, again) : nullptr;
        frames = symbols ? walk_stack(*symbols, thread) : std::vector<CallFrame>{};
        const bool is_known = !frames.empty() && !frames.front().file.empty();
        if (is_known) break;
    }
    if (frames.empty()) frames.push_back({thread.call.instruction, "", "", ""});
    std::string text;
    for (const CallFrame& frame : frames) {
        text += fmt::format(" > {}({}) [{:#x}]\n", frame.file.empty() ? "?" : frame.file,
                            frame.symbol, frame.instruction);
    }
    return text;
}

bool TracePrinter::flush() { return std::fflush(out_) == 0 && std::ferror(out_) == 0; }

}  // namespace gpr
