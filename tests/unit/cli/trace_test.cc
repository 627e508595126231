// gpr trace: calls in words, and events put together.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include <csignal>
#include <cstring>

#include "tools/call_text.h"
#include "tools/call_values.h"
#include "tools/flag_names.h"
#include "tools/trace_options.h"
#include "tools/trace_story.h"

using namespace gpr;

namespace {

TracedPart part(unsigned argument, unsigned kind, std::string bytes, bool at_end = false) {
    TracedPart made;
    made.about.argument = static_cast<__u8>(argument);
    made.about.kind = static_cast<__u8>(kind);
    made.about.at_end = at_end;
    made.about.bytes = static_cast<__u16>(bytes.size());
    made.about.whole = bytes.size();
    made.bytes = std::move(bytes);
    return made;
}

template <class Value>
std::string bytes_of(const Value& value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
}

TracedCall call(int64_t number, std::array<uint64_t, 6> args, std::vector<TracedPart> parts = {}) {
    TracedCall made;
    made.number = number;
    made.args = args;
    made.parts = std::move(parts);
    return made;
}

TracedEvent event(gpr_trace_kind kind, unsigned node, int64_t number, int64_t result = 0,
                  uint64_t ip = 0x1002) {
    TracedEvent made;
    made.about.kind = static_cast<__u8>(kind);
    made.about.node = static_cast<__u8>(node);
    made.about.pid = made.about.tid = 7;
    made.about.number = number;
    made.about.result = result;
    made.about.ip = ip;
    return made;
}

// What a story tells, one word for each.
struct Heard {
    std::string words;
    TraceStory story{{
        [this](const TracedThread& thread, uint64_t) {
            words += call_name(thread.call.number) + "=" + CallText::result(thread.call) + " ";
        },
        [this](const TracedThread&, const TracedEvent& e) {
            words += signal_name(static_cast<int>(e.about.number)) + " ";
        },
        [this](const TracedThread&, const TracedEvent&) { words += "crosses "; },
        [this](const TracedThread& thread, const TracedEvent& e) {
            words += e.about.kind == GPR_TRACE_MISS ? "waits" : "gets";
            words += "@" + std::to_string(thread.node) + " ";
        },
        [this](const TracedThread&, const TracedEvent&) { words += "ends "; },
        [](unsigned, uint64_t) {},
        [this] { words += "over "; },
        [](unsigned, const std::string&) {},
    }};
    Heard& operator<<(TracedEvent e) {
        story.take(std::move(e));
        return *this;
    }
};

}  // namespace

TEST_CASE("flags have names, and what has none is a number") {
    CHECK(flag_text(*flags_of("openat", "2"), O_RDONLY | O_CLOEXEC) == "O_RDONLY|O_CLOEXEC");
    CHECK(flag_text(*flags_of("openat", "2"), O_RDWR | O_CREAT | 0x80000000u) ==
          "O_RDWR|O_CREAT|0x80000000");
    CHECK(flag_text(*flags_of("mmap", "2"), 0) == "PROT_NONE");
    CHECK(flag_text(*flags_of("futex", "1"), 128 | 1) == "FUTEX_WAKE|FUTEX_PRIVATE_FLAG");
    CHECK(flag_text(*flags_of("lseek", "2"), 2) == "SEEK_END");
    CHECK(flags_of("read", "0") == nullptr);
}

TEST_CASE("calls are in the words of strace") {
    const CallText text(nullptr, false, 5);
    CHECK(text.begin(call(SYS_openat, {0xffffff9c, 1, O_RDONLY, 0, 0, 0},
                          {part(1, GPR_PART_STRING, "/etc/hostname")})) ==
          "openat(AT_FDCWD, \"/etc/hostname\", O_RDONLY");
    CHECK(text.begin(call(SYS_write, {1, 0x1000, 7, 0, 0, 0},
                          {part(1, GPR_PART_BYTES, "one\ttwo")})) == "write(1, \"one\\tt\"..., 7");
    CHECK(text.begin(call(SYS_read, {3, 0x1000, 9, 0, 0, 0})) == "read(3, 0x1000, 9");
    CHECK(
        text.begin(call(SYS_execve, {1, 0x2000, 0x3000, 0, 0, 0},
                        {part(0, GPR_PART_STRING, "/bin/ls"), part(1, GPR_PART_ELEMENT, "ls")})) ==
        "execve(\"/bin/ls\", [\"ls\"], 0x3000");
    CHECK(text.begin(call(SYS_kill, {12, 10, 0, 0, 0, 0})) == "kill(12, SIGUSR1");
    CHECK(text.begin(call(SYS_getpid, {})) == "getpid(");
    CHECK(text.begin(call(4000, {1, 0x20000, 0, 0, 0, 0})).starts_with("syscall_0xfa0("));
}

TEST_CASE("results, with errors by name and text") {
    TracedCall made = call(SYS_read, {});
    CHECK(CallText::result(made) == "?");
    made.result = 5;
    CHECK(CallText::result(made) == "5");
    made.result = -ENOENT;
    CHECK(CallText::result(made) == "-1 ENOENT (No such file or directory)");
    made.result = -512;
    CHECK(CallText::result(made) == "? ERESTARTSYS (To be restarted if SA_RESTART is set)");
    made.number = SYS_mmap;
    made.result = 0x7f0000001000;
    CHECK(CallText::result(made) == "0x7f0000001000");
}

TEST_CASE("values that are no plain structures") {
    CHECK(wait_status_text(0x300) == "[{WIFEXITED(s) && WEXITSTATUS(s) == 3}]");
    CHECK(wait_status_text(9) == "[{WIFSIGNALED(s) && WTERMSIG(s) == SIGKILL}]");
    CHECK(end_text(0x200) == "+++ exited with 2 +++");
    CHECK(signal_set_text(bytes_of(uint64_t{1} << 16 | 1 << 9)) == "[USR1 CHLD]");
    CHECK(signal_set_text(bytes_of(~uint64_t{0})) == "~[]");
    CHECK(socket_address_text(std::string("\1\0/run/x\0", 9)) ==
          "{sa_family=AF_UNIX, sun_path=\"/run/x\"}");
    CHECK(socket_address_text(std::string("\2\0\0\x50\x7f\0\0\1", 8)) ==
          "{sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr(\"127.0.0.1\")}");
    CHECK(socket_address_text("") == "{sa_family=AF_UNSPEC, sa_data=\"\"}");
    CHECK(quoted(std::string("a\0001\xff", 4), false) == "\"a\\0001\\377\"");
}

TEST_CASE("structures are those of the running kernel") {
    const auto types = KernelTypes::load();
    if (!types) {
        MESSAGE("skipped: " << types.error().message());
        return;
    }
    CHECK(types->size_of("struct iovec") == 16);
    CHECK(!types->size_of("struct that_nobody_has"));
    struct {
        int64_t seconds, nanoseconds;
    } time{3, 5};
    CHECK(types->text_of("struct __kernel_timespec", bytes_of(time), false) ==
          "{tv_sec=3, tv_nsec=5}");
    CHECK(types->text_of("struct __kernel_timespec", std::string(8, '\1'), true)
              .ends_with("...}"));  // half of it was taken
}

TEST_CASE("a call that is stopped and made again, or elsewhere, is one call") {
    Heard heard;
    SUBCASE("it begins for the filter and in the kernel") {
        heard << event(GPR_TRACE_BEGIN, 1, SYS_read) << event(GPR_TRACE_BEGIN, 1, SYS_read)
              << event(GPR_TRACE_END, 1, SYS_read, 4);
        CHECK(heard.words == "read=4 ");
    }
    SUBCASE("it is made in the stub") {
        heard << event(GPR_TRACE_BEGIN, 0, SYS_read) << event(GPR_TRACE_END, 0, SYS_read, -512)
              << event(GPR_TRACE_RESUME, 0, -1, 6);
        CHECK(heard.words == "read=6 ");
    }
    SUBCASE("its thread goes home and makes it again") {
        heard << event(GPR_TRACE_BEGIN, 1, SYS_read) << event(GPR_TRACE_END, 1, SYS_read, -512)
              << event(GPR_TRACE_RESUME, 0, -1, SYS_read, 0x1000)
              << event(GPR_TRACE_BEGIN, 0, SYS_read) << event(GPR_TRACE_END, 0, SYS_read, 2);
        CHECK(heard.words == "read=2 ");
    }
    SUBCASE("its thread is stopped, and gets what home answers") {
        heard << event(GPR_TRACE_BEGIN, 1, SYS_fork) << event(GPR_TRACE_END, 1, SYS_fork, -513)
              << event(GPR_TRACE_ANSWER, 1, 0, 99) << event(GPR_TRACE_BEGIN, 1, SYS_fork)
              << event(GPR_TRACE_END, 1, SYS_fork, 100);
        CHECK(heard.words == "fork=99 fork=100 ");
    }
    SUBCASE("a handler interrupts it") {
        heard << event(GPR_TRACE_BEGIN, 0, SYS_read) << event(GPR_TRACE_END, 0, SYS_read, -512)
              << event(GPR_TRACE_SIGNAL, 0, SIGUSR1);
        CHECK(heard.words == "read=? ERESTARTSYS (To be restarted if SA_RESTART is set) SIGUSR1 ");
    }
    SUBCASE("home has a signal for a thread that is in a call elsewhere") {
        heard << event(GPR_TRACE_BEGIN, 1, SYS_wait4) << event(GPR_TRACE_SIGNAL, 0, SIGCHLD)
              << event(GPR_TRACE_END, 1, SYS_wait4, 8);
        CHECK(heard.words == "wait4=8 SIGCHLD ");
    }
    SUBCASE("it does not return") {
        heard << event(GPR_TRACE_BEGIN, 1, SYS_exit_group)
              << event(GPR_TRACE_END, 1, SYS_exit_group, -512) << event(GPR_TRACE_EXIT, 0, 0);
        CHECK(heard.words == "exit_group=? ends ");
    }
}

TEST_CASE("events that are none are refused") {
    gpr_trace_event about{};
    about.size = sizeof about;
    std::string bytes = bytes_of(about);
    bool broken = false;
    std::string_view rest = bytes;
    CHECK(TracedEvent::take(rest, broken));
    CHECK(rest.empty());
    rest = std::string_view(bytes).substr(0, 20);  // it is not complete
    CHECK((!TracedEvent::take(rest, broken) && !broken));
    for (const uint32_t size : {0u, 8u, uint32_t{sizeof about + 4}, 0xfffffff8u}) {
        about.size = size;
        bytes = bytes_of(about);
        rest = bytes;
        CHECK((!TracedEvent::take(rest, broken) && broken));
    }
    about.size = sizeof about;
    about.parts = 3;
    bytes = bytes_of(about);
    rest = bytes;
    CHECK((!TracedEvent::take(rest, broken) && broken));
}

TEST_CASE("pages that come to a node where the thread is no longer do not move it there") {
    Heard heard;
    heard << event(GPR_TRACE_MISS, 1, 0) << event(GPR_TRACE_PAGES, 1, 0);
    heard << event(GPR_TRACE_MISS, 0, 0) << event(GPR_TRACE_PAGES, 1, 0);
    CHECK(heard.words == "waits@1 gets@1 waits@0 gets@0 ");
    Heard not_yet;
    not_yet.story.ignore_until_exec(7);
    not_yet << event(GPR_TRACE_MISS, 0, 0) << event(GPR_TRACE_PAGES, 0, 0);
    CHECK(not_yet.words.empty());
}

TEST_CASE("the last event of a session is told") {
    Heard heard;
    heard << event(GPR_TRACE_OVER, 0, 0);
    CHECK(heard.words == "over ");
}

TEST_CASE("what is traced") {
    const auto wants = [](const gpr_trace_order& order, unsigned number) {
        return (order.wanted[number / 64] >> (number % 64) & 1) != 0;
    };
    const auto all = trace_choice({}, "", false);
    REQUIRE(all);
    CHECK((wants(all->order, SYS_read) && all->order.crossings && !all->order.pages));
    const auto pages = trace_choice({"%page"}, "", false);
    REQUIRE(pages);
    CHECK((pages->order.pages && !pages->order.crossings && !wants(pages->order, SYS_read)));
    const auto files = trace_choice({"trace=%file,close"}, "64", false);
    REQUIRE(files);
    CHECK((wants(files->order, SYS_openat) && wants(files->order, SYS_execve)));
    CHECK((wants(files->order, SYS_close) && !wants(files->order, SYS_read)));
    CHECK(files->order.string_bytes == 64);
    const auto others = trace_choice({"!%memory,crossing"}, "", true);
    REQUIRE(others);
    CHECK((!wants(others->order, SYS_mmap) && wants(others->order, SYS_read)));
    CHECK((!others->order.crossings && others->order.stack_bytes > 0));
    CHECK(!trace_choice({"trace=opennat"}, "", false));
    CHECK(!trace_choice({"signal=SIGNONE"}, "", false));
    CHECK(!trace_choice({}, "99999", false));
    CHECK(order_digits(all->order).size() == 2 * sizeof(gpr_trace_order));
}
