// The gdb server with several processes: children of forks that wait for the debugger.
#include <doctest/doctest.h>

#include <cstring>
#include <memory>

#include "monitor/debug/gdb_server.h"
#include "tests/unit/monitor/gdb_fake_debuggee.h"

namespace gpr::debug {
namespace {

constexpr pid_t parents = FakeDebuggee::its_pid;
constexpr pid_t childs = 0x200;

struct Debugger {
    FakeDebuggee parent;
    std::shared_ptr<FakeDebuggee> child = std::make_shared<FakeDebuggee>(childs);
    std::string received;
    bool hung_up = false;
    GdbServer server{parent, [this](std::string bytes) { received += bytes; },
                     [this] { hung_up = true; }};

    explicit Debugger(const char* features =
                          "qSupported:multiprocess+;fork-events+;vfork-events+;exec-events+;"
                          "swbreak+") {
        ask("QStartNoAckMode");
        ask(features);
    }

    std::string ask(std::string_view content) {
        server.receive(to_packet(content));
        return answer();
    }
    std::string answer() {
        std::string contents;
        PacketReader reader;
        const std::string got = std::exchange(received, "");
        std::string_view bytes = got;
        while (auto arrival = reader.next(bytes)) {
            if (arrival->kind == PacketReader::Kind::packet) contents += arrival->content;
        }
        return contents;
    }
    // The end of the stop reply: who stopped, and why.
    std::string stop(const StopReason& why) {
        server.on_stop(why);
        return end_of(answer());
    }
    static std::string end_of(const std::string& reply) {
        const size_t name = reply.find("thread:");
        return name == std::string::npos ? reply : reply.substr(name + sizeof "thread:" - 1);
    }
    static StopReason in(pid_t pid, int signal = SIGTRAP) {
        StopReason why{StopReason::Kind::signal, pid, signal};
        why.pid = pid;
        return why;
    }
    static StopReason end(pid_t pid, int status) {
        StopReason why{StopReason::Kind::exited, pid, status};
        why.pid = pid;
        return why;
    }
    std::string fork(bool shares_memory = false) {
        ask("vCont;c:p100.-1");
        StopReason why = in(parents);
        why.fork = {childs, shares_memory, false, child};
        return stop(why);
    }
};

TEST_CASE("a child is let go without being touched") {
    Debugger gdb;
    CHECK((gdb.parent.catches_forks && gdb.parent.catches_vforks));
    CHECK(gdb.ask("Z0,1010,1") == "OK");
    CHECK(gdb.fork() == "p100.100;fork:p200.200;");
    CHECK(gdb.ask("Hgp200.200") == "OK");
    CHECK(gdb.ask("z0,1010,1") == "OK");
    CHECK(gdb.parent.breakpoints.contains({0x1010}));
    CHECK(gdb.ask("D;200") == "OK");
    CHECK((gdb.child->detached == 1 && gdb.child->prepared == 0));
    CHECK((gdb.parent.detached == 0 && !gdb.hung_up));
    CHECK(gdb.ask("Hgp200.200") == "E03");
    CHECK(gdb.ask("Hgp100.100") == "OK");
    CHECK(gdb.ask("D;100") == "OK");
    CHECK((gdb.parent.detached == 1 && gdb.hung_up));
    Debugger older("qSupported:fork-events+;vfork-events+");
    CHECK(!older.parent.catches_forks);
}

TEST_CASE("a child is followed, its parent let go") {
    Debugger gdb;
    gdb.fork();
    CHECK(gdb.ask("D;100") == "OK");
    CHECK((gdb.parent.detached == 1 && !gdb.hung_up));
    CHECK(gdb.ask("Hgp200.0") == "OK");
    CHECK(gdb.ask("p10") == "0002400000000000");
    CHECK(gdb.ask("Z0,1020,1") == "OK");
    CHECK(gdb.child->breakpoints.contains({0x1020}));
    CHECK(gdb.child->prepared > 0);
    CHECK(gdb.ask("vCont;c:p200.-1").empty());
    CHECK(gdb.child->continued.size() == 1);
    CHECK(gdb.stop(Debugger::end(childs, 7)) == "W07;process:200");
    CHECK(gdb.hung_up);
}

TEST_CASE("two processes, of which one goes on") {
    Debugger gdb;
    gdb.fork();
    CHECK(gdb.ask("qXfer:threads:read::0,1000").find("p200.201") != std::string::npos);
    CHECK(gdb.ask("qfThreadInfo") == "mp100.100,p100.101,p200.200,p200.201");
    gdb.child->content[0x10] = 'c';
    gdb.parent.content[0x10] = 'p';
    CHECK(gdb.ask("Hgp200.200") == "OK");
    CHECK(gdb.ask("m1010,1") == "63");
    CHECK(gdb.ask("Hgp100.100") == "OK");
    CHECK(gdb.ask("m1010,1") == "70");
    CHECK(gdb.ask("vCont;c:p200.-1").empty());
    CHECK((gdb.child->continued.size() == 1 && gdb.parent.continued.size() == 1));
    CHECK(gdb.stop(Debugger::in(childs, SIGUSR1)) == "p200.200;");
    CHECK((gdb.parent.interrupted == 0 && gdb.child->interrupted == 0));
    CHECK(gdb.ask("vCont;s:p100.101;t:p200.-1;c:p100.-1").empty());
    CHECK(gdb.child->continued.size() == 1);
    CHECK(gdb.parent.continued.back().size() == 2);
    gdb.server.receive("\x03");
    CHECK((gdb.parent.interrupted_with == SIGINT && gdb.child->interrupted == 0));
    CHECK(gdb.stop(Debugger::in(parents, SIGINT)) == "p100.100;");
    CHECK(gdb.ask("vKill;200") == "OK");
    CHECK((gdb.child->killed == 1 && !gdb.hung_up));
    CHECK(gdb.ask("vKill;200") == "E16");
    CHECK(gdb.ask("vKill;100") == "OK");
    CHECK((gdb.parent.killed == 1 && gdb.hung_up));
}

TEST_CASE("two processes stop together") {
    Debugger gdb;
    gdb.fork();
    CHECK(gdb.ask("vCont;c").empty());
    CHECK((gdb.child->continued.size() == 1 && gdb.parent.continued.size() == 2));
    CHECK(gdb.stop(Debugger::in(childs)).empty());  // not before the other has stopped
    CHECK((gdb.parent.interrupted == 1 && gdb.parent.interrupted_with == 0));
    CHECK(gdb.stop(Debugger::in(parents, 0)) == "p200.200;");
    // Both have something to tell: one at a time, and who waits with it does not go on.
    CHECK(gdb.ask("vCont;c").empty());
    CHECK(gdb.stop(Debugger::in(childs)).empty());
    CHECK(gdb.stop(Debugger::in(parents, SIGUSR2)) == "p200.200;");
    CHECK(Debugger::end_of(gdb.ask("vCont;c")) == "p100.100;");
    CHECK((gdb.child->continued.size() == 2 && gdb.parent.continued.size() == 3));
    CHECK(gdb.ask("vCont;c").empty());
    // One ends, and the other goes on.
    CHECK(gdb.stop(Debugger::end(childs, 0)).empty());
    CHECK(gdb.stop(Debugger::in(parents, 0)) == "W00;process:200");
    CHECK(gdb.ask("vCont;c:p100.-1").empty());
    CHECK(gdb.stop(Debugger::end(parents, 3)) == "W03;process:100");
    CHECK(gdb.hung_up);
}

TEST_CASE("a child of vfork is shown as its parent until gdb knows that it is none any more") {
    Debugger gdb;
    StopReason exec{StopReason::Kind::exec, childs, 0};
    exec.pid = childs;
    gdb.ask("vCont;c");
    CHECK(gdb.stop(exec).empty());
    StopReason why = Debugger::in(parents);
    why.fork = {childs, true, false, gdb.child};
    CHECK(gdb.stop(why) == "p100.100;vfork:p200.200;");
    CHECK(gdb.ask("Hgp200.200") == "OK");
    gdb.parent.content[0x10] = 'p';
    CHECK(gdb.ask("m1010,1") == "70");
    CHECK(gdb.ask("p10") == "0001400000000000");
    CHECK(gdb.ask("P10=0002400000000000") == "E01");
    CHECK(gdb.ask("Z0,1010,1") == "OK");
    CHECK((gdb.parent.breakpoints.empty() && gdb.child->breakpoints.empty()));
    const std::string told = Debugger::end_of(gdb.ask("vCont;c:p200.-1"));
    CHECK(told == "p200.200;exec:" + to_hex(std::string_view("/bin/fake")) + ";");
    CHECK(gdb.child->continued.empty());
    CHECK(gdb.ask("p10") == "0002400000000000");
    CHECK(gdb.ask("Z0,1010,1") == "OK");
    CHECK(gdb.child->breakpoints.size() == 1);
    CHECK(gdb.ask("D;100") == "OK");
    CHECK(gdb.ask("vCont;c").empty());
    CHECK(gdb.child->continued.size() == 1);
    why.fork->is_over = true;
    why.fork->process = nullptr;
    CHECK(gdb.stop(why).empty());  // the parent is not gdb's any more
}

TEST_CASE("a child that cannot be debugged") {
    Debugger gdb;
    gdb.child->can_be_debugged = false;
    gdb.server.on_stop(Debugger::end(childs, 0));
    CHECK(gdb.fork() == "p100.100;fork:p200.200;");
    CHECK(Debugger::end_of(gdb.ask("vCont;c:p200.-1")) == "W00;process:200");
    CHECK(gdb.ask("D;200") == "E16");
    Debugger other;
    other.fork();
    other.child->can_be_debugged = false;
    CHECK(other.ask("Hgp200.200") == "OK");
    CHECK(other.ask("g") == "E03");
    other.server.closed();
    CHECK((other.child->detached == 1 && other.parent.detached == 1));
}

}  // namespace
}  // namespace gpr::debug
