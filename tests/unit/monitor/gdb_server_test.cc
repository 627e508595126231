#include "monitor/debug/gdb_server.h"

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <random>

#include "monitor/debug/breakpoints.h"
#include "monitor/debug/gdb_registers.h"
#include "tests/unit/monitor/gdb_fake_debuggee.h"

namespace gpr::debug {
namespace {

constexpr pid_t main_tid = FakeDebuggee::its_pid;

// The debugger's end of the wire.
struct Debugger {
    FakeDebuggee process;
    std::string received;  // as it came
    bool hung_up = false;
    std::unique_ptr<GdbServer> server;

    explicit Debugger(bool acknowledges = false) {
        server = std::make_unique<GdbServer>(
            process, [this](std::string bytes) { received += bytes; }, [this] { hung_up = true; });
        if (acknowledges) return;
        CHECK(ask("QStartNoAckMode") == "OK");
    }

    void say(std::string_view content) { server->receive(to_packet(content)); }
    std::vector<std::string> answers() {
        PacketReader reader;
        std::vector<std::string> contents;
        std::string_view bytes = received;
        while (auto arrival = reader.next(bytes)) {
            if (arrival->kind == PacketReader::Kind::packet) contents.push_back(arrival->content);
        }
        received.clear();
        return contents;
    }
    std::string ask(std::string_view content) {
        say(content);
        const auto got = answers();
        return got.size() == 1 ? got.front() : "answers: " + std::to_string(got.size());
    }
    void stops(int signal, pid_t tid = main_tid) {
        server->on_stop({StopReason::Kind::signal, tid, signal});
    }
};

TEST_CASE("packets are acknowledged until gdb wants it no more") {
    Debugger gdb(true);
    gdb.say("qC");
    CHECK(gdb.received == "+" + to_packet("QC100"));
    gdb.received.clear();
    gdb.server->receive("-");
    CHECK(gdb.received == to_packet("QC100"));
    gdb.received.clear();
    gdb.server->receive("+-");
    CHECK(gdb.received.empty());
    gdb.server->receive("$qC#00");
    CHECK(gdb.received == "-");
    gdb.received.clear();
    gdb.say("QStartNoAckMode");
    CHECK(gdb.received == "+" + to_packet("OK"));
    gdb.received.clear();
    gdb.say("qC");
    CHECK(gdb.received == to_packet("QC100"));
    gdb.server->receive("$qC#00");
    CHECK(gdb.hung_up);
    CHECK(gdb.process.detached == 1);
}

TEST_CASE("it says what it can do") {
    Debugger gdb;
    const std::string plain = gdb.ask("qSupported:vContSupported+");
    CHECK(plain.find("PacketSize=4000") != std::string::npos);
    CHECK(plain.find("multiprocess") == std::string::npos);
    CHECK(gdb.ask("qC") == "QC100");
    CHECK(gdb.ask("qSupported:multiprocess+;xmlRegisters=i386").find(";multiprocess+") !=
          std::string::npos);
    CHECK(gdb.ask("qC") == "QCp100.100");
    CHECK(gdb.ask("vCont?") == "vCont;c;C;s;S;t");
    CHECK(gdb.ask("qAttached:100") == "1");
    for (const char* unknown : {"vMustReplyEmpty", "Z0,1000,1", "z0,1000,1", "Z3,1000,4", "!",
                                "QNonStop:1", "vAttach;1", "vFile:pwrite:0,0,a", ""}) {
        CHECK(gdb.ask(unknown) == "");
    }
}

TEST_CASE("breakpoints are set for a debugger that is told where they stop a thread") {
    Debugger gdb;
    CHECK(gdb.ask("qSupported:swbreak+").find(";swbreak+") != std::string::npos);
    CHECK(gdb.ask("Z0,1010,1") == "OK");
    CHECK(gdb.process.breakpoints == std::set<Address>{{0x1010}});
    CHECK(gdb.ask("Z0,9000,1") == "E0e");
    CHECK(gdb.ask("Z0,,1") == "E16");
    CHECK(gdb.ask("Z1,1010,1") == "");
    CHECK(gdb.ask("z0,1010,1") == "OK");
    CHECK(gdb.process.breakpoints.empty());
}

TEST_CASE("a debugger that can follow an exec does") {
    const StopReason exec{StopReason::Kind::exec, main_tid, 0};
    Debugger follows;
    follows.ask("qSupported:exec-events+");
    follows.say("vCont;c");
    follows.server->on_stop(exec);
    const auto told = follows.answers();
    REQUIRE(told.size() == 1);
    CHECK(told.front().starts_with("T05"));
    CHECK(told.front().ends_with(";exec:" + to_hex("/bin/fake") + ";"));
    CHECK(follows.process.detached == 0);

    Debugger cannot;
    cannot.say("vCont;c");
    cannot.server->on_stop(exec);
    CHECK(cannot.answers() == std::vector<std::string>{"W00"});
    CHECK(cannot.process.detached == 1);
}

TEST_CASE("what is read and written has no breakpoints in it") {
    Breakpoints breakpoints;
    breakpoints.add({0x1001}, std::byte{0x55});
    breakpoints.add({0x1004}, std::byte{0x90});
    std::vector<std::byte> seen(4, Breakpoints::int3);
    breakpoints.hide({0x1000}, seen);
    CHECK(seen == std::vector<std::byte>{Breakpoints::int3, std::byte{0x55}, Breakpoints::int3,
                                         Breakpoints::int3});
    std::vector<std::byte> written{std::byte{1}, std::byte{2}};
    breakpoints.keep({0x1000}, written);
    CHECK(written == std::vector<std::byte>{std::byte{1}, Breakpoints::int3});
    CHECK(breakpoints.original({0x1001}) == std::byte{2});
    CHECK(breakpoints.original({0x1004}) == std::byte{0x90});
}

TEST_CASE("threads are listed, chosen and described") {
    Debugger gdb;
    CHECK(gdb.ask("qfThreadInfo") == "m100,101");
    CHECK(gdb.ask("qsThreadInfo") == "l");
    CHECK(gdb.ask("T101") == "OK");
    CHECK(gdb.ask("T102") == "E03");
    CHECK(gdb.ask("qThreadExtraInfo,100") == to_hex("at home"));
    CHECK(gdb.ask("Hg101") == "OK");
    CHECK(gdb.ask("qC") == "QC101");
    CHECK(gdb.ask("Hg102") == "E03");
    CHECK(gdb.ask("Hgp200.101") == "E03");
    CHECK(gdb.ask("Hg0") == "OK");
    CHECK(gdb.ask("qC") == "QC101");
    gdb.process.state.erase(main_tid + 1);
    CHECK(gdb.ask("qC") == "QC100");
    gdb.process.state[main_tid + 1] = {};
    const std::string list = gdb.ask("qXfer:threads:read::0,1000");
    CHECK(list.find("<thread id=\"101\">at &lt;10.0.0.7&gt;</thread>") != std::string::npos);
    CHECK(list.front() == 'l');
}

TEST_CASE("registers are those of the chosen thread") {
    Debugger gdb;
    CHECK(gdb.ask("Hg101") == "OK");
    CHECK(gdb.ask("p10") == "0101400000000000");
    CHECK(gdb.ask("P10=0201400000000000") == "OK");
    CHECK(gdb.process.state[main_tid + 1].general.rip == 0x400102);
    CHECK(gdb.process.state[main_tid].general.rip == 0x400100);
    const std::string all = gdb.ask("g");
    CHECK(all == GdbRegisters::of_this_processor().read_all(gdb.process.state[main_tid + 1]));
    CHECK(gdb.ask("Hg100") == "OK");
    CHECK(gdb.ask("G" + all) == "OK");
    CHECK(gdb.process.state[main_tid].general.rip == 0x400102);
    CHECK(gdb.ask("pfff") == "E16");
    CHECK(gdb.ask("P10=02") == "E16");
    CHECK(gdb.ask("G00") == "E16");
    gdb.process.state.clear();
    CHECK(gdb.ask("g") == "E03");
}

TEST_CASE("memory is read and written") {
    Debugger gdb;
    CHECK(gdb.ask("M1000,3:01ff23") == "OK");
    CHECK(gdb.ask("m1000,4") == "01ff2300");
    CHECK(gdb.ask("m1ffe,8") == "0000");
    CHECK(gdb.ask("m2000,1") == "E0e");
    CHECK(gdb.ask("mffffffffffffffff,8") == "");
    CHECK(gdb.ask("m0,ffffffffffffffff") == "E0e");
    CHECK(gdb.ask("m1000") == "E16");
    CHECK(gdb.ask(std::string("X1004,4:#$}\0", 12)) == "OK");
    CHECK(gdb.ask("X1004,0:") == "OK");
    CHECK(gdb.ask("x1004,4") == std::string("b#$}\0", 5));
    CHECK(gdb.ask("X1004,5:abcd") == "E16");
    CHECK(gdb.ask("M1fff,2:0000") == "E0e");
}

TEST_CASE("documents come in pieces that fit together") {
    Debugger gdb;
    std::string description;
    for (std::string piece; piece.empty() || piece.front() == 'm'; description += piece.substr(1)) {
        piece =
            gdb.ask("qXfer:features:read:target.xml:" +
                    to_hex(std::string(1, static_cast<char>(description.size() >> 8))) +
                    to_hex(std::string(1, static_cast<char>(description.size() & 0xff))) + ",100");
        REQUIRE(piece.size() > 1);
        REQUIRE(piece.size() <= 0x101);
    }
    CHECK(description.ends_with("</target>\n"));
    CHECK(gdb.ask("qXfer:features:read:other.xml:0,100") == "E00");
    CHECK(gdb.ask("qXfer:auxv:read::0,1000") == "l" + gdb.process.auxv());
    CHECK(gdb.ask("qXfer:auxv:read::2,3") == "m" + gdb.process.auxv().substr(2, 3));
    CHECK(gdb.ask("qXfer:auxv:read::ffffffffffff,3") == "l");
    CHECK(gdb.ask("qXfer:exec-file:read:100:0,1000") == "l/bin/fake");
    CHECK(gdb.ask("qXfer:siginfo:read::0,1000").size() == 1 + sizeof(siginfo_t));
    CHECK(gdb.ask("Hg101") == "OK");
    CHECK(gdb.ask("qXfer:siginfo:read::0,1000") == "E00");
    CHECK(gdb.ask("qXfer:auxv:write::0:00") == "");
    CHECK(gdb.ask("qXfer:unheard-of:read::0,1000") == "");
    CHECK(gdb.ask("qXfer:auxv:read::0") == "E16");
}

TEST_CASE("the process continues as it is told, and its stop is told") {
    Debugger gdb;
    CHECK(gdb.ask("?").starts_with("T00"));
    gdb.say("vCont;C0b:101;s:100;c");
    CHECK(gdb.answers().empty());
    REQUIRE(gdb.process.continued.size() == 1);
    const auto& threads = gdb.process.continued[0];
    REQUIRE(threads.size() == 2);
    CHECK((threads[0].tid == main_tid && threads[0].steps && threads[0].signal == 0));
    CHECK((threads[1].tid == main_tid + 1 && !threads[1].steps && threads[1].signal == SIGSEGV));
    gdb.stops(SIGUSR1, main_tid + 1);
    const auto told = gdb.answers();
    REQUIRE(told.size() == 1);
    CHECK(told[0] == "T1e06:0000000000000000;07:0000000000000000;10:0101400000000000;thread:101;");
    CHECK(gdb.ask("qC") == "QC101");

    gdb.say("vCont;t:101;c");
    CHECK(gdb.process.continued[1].size() == 1);
    gdb.stops(SIGTRAP);
    gdb.answers();
    gdb.say("vCont;C0b");  // only that which stopped gets it
    CHECK(gdb.process.continued[2][0].signal == SIGSEGV);
    CHECK(gdb.process.continued[2][1].signal == 0);
    gdb.stops(SIGTRAP);
    gdb.answers();
    CHECK(gdb.ask("vCont;x") == "E16");
    CHECK(gdb.ask("vCont") == "E16");
    CHECK(gdb.ask("vCont;c:p200.1") == "E16");
    CHECK(gdb.ask("c1000") == "E16");
}

TEST_CASE("the old packets continue it too") {
    Debugger gdb;
    CHECK(gdb.ask("Hc101") == "OK");
    gdb.say("s");
    REQUIRE(gdb.process.continued.size() == 1);
    CHECK(!gdb.process.continued[0][0].steps);
    CHECK(gdb.process.continued[0][1].steps);
    gdb.stops(SIGTRAP);
    CHECK(gdb.ask("Hc-1") != "");
    gdb.say("C0b");
    CHECK(gdb.process.continued[1][0].signal == SIGSEGV);
    CHECK(gdb.process.continued[1][1].signal == 0);
}

TEST_CASE("threads come and go") {
    Debugger gdb;
    gdb.say("vCont;s:101;c");
    gdb.process.state.erase(main_tid + 1);
    gdb.process.state[main_tid + 7] = {};
    gdb.stops(SIGTRAP, main_tid + 1);  // of a thread that ended since
    CHECK(gdb.answers().at(0).ends_with("thread:100;"));
    CHECK(gdb.ask("qfThreadInfo") == "m100,107");
    gdb.say("vCont;s:101;c");  // the first of these has gone
    CHECK(gdb.process.continued[1].size() == 2);
    gdb.stops(SIGTRAP);
    gdb.answers();
    CHECK(gdb.ask("vCont;s:101").starts_with("T00"));  // nobody is left to continue
    CHECK(gdb.process.continued.size() == 2);
}

TEST_CASE("^C is heeded while it runs, everything else waits") {
    Debugger gdb;
    gdb.server->receive("\x03");
    CHECK(gdb.process.interrupted == 0);
    gdb.say("vCont;c");
    gdb.say("qC");
    CHECK(gdb.answers().empty());
    gdb.server->receive("\x03");
    CHECK(gdb.process.interrupted == 1);
    gdb.stops(SIGINT);
    const auto told = gdb.answers();
    REQUIRE(told.size() == 2);
    CHECK(told[0].starts_with("T02"));
    CHECK(told[1] == "QC100");
    gdb.say("vCont;c");
    for (int i = 0; i < 100; i++) gdb.say("qC");
    CHECK(gdb.hung_up);
    CHECK(gdb.process.detached == 1);
    gdb.stops(SIGINT);
    CHECK(gdb.answers().empty());
}

TEST_CASE("signals that gdb does not want continue at once") {
    Debugger gdb;
    CHECK(gdb.ask("QPassSignals:e;14;2") == "OK");  // SIGALRM, SIGCHLD, SIGINT
    CHECK(gdb.ask("QProgramSignals:0;1;2") == "OK");
    gdb.say("vCont;c");
    gdb.process.state[main_tid + 2] = {};
    gdb.stops(SIGALRM, main_tid + 1);
    CHECK(gdb.answers().empty());
    REQUIRE(gdb.process.continued.size() == 2);
    REQUIRE(gdb.process.continued[1].size() == 3);
    CHECK(gdb.process.continued[1][0].signal == 0);
    CHECK(gdb.process.continued[1][1].signal == SIGALRM);
    gdb.stops(SIGINT);
    CHECK(gdb.process.continued.size() == 3);
    gdb.server->receive("\x03");
    gdb.stops(SIGINT);  // which gdb asked for
    CHECK(gdb.answers().size() == 1);
    gdb.say("vCont;s:100;c");
    gdb.stops(SIGCHLD, main_tid);  // it steps: gdb must know that a handler comes
    CHECK(gdb.answers().at(0).starts_with("T14"));
    CHECK(gdb.ask("QPassSignals:x") == "E16");
    CHECK(gdb.ask("QPassSignals:") == "OK");
    gdb.say("vCont;c");
    gdb.stops(SIGALRM);
    CHECK(gdb.answers().size() == 1);
}

TEST_CASE("the end of the process is told once, and ends the conversation") {
    Debugger exits;
    exits.say("vCont;c");
    exits.server->on_stop({StopReason::Kind::exited, main_tid, 3});
    CHECK(exits.answers() == std::vector<std::string>{"W03"});
    CHECK(exits.hung_up);
    exits.server->closed();
    CHECK(exits.process.detached == 0);

    Debugger dies;
    dies.ask("qSupported:multiprocess+");
    dies.server->on_stop({StopReason::Kind::killed, main_tid, SIGBUS});  // while it is stopped
    CHECK(dies.answers().empty());
    CHECK(dies.ask("vCont;c") == "X0a;process:100");
    CHECK(dies.process.continued.empty());
    CHECK(dies.hung_up);
}

TEST_CASE("kill, detach, and a debugger that goes away") {
    Debugger kills;
    CHECK(kills.ask("vKill;200") == "E16");
    CHECK(kills.ask("vKill;100") == "OK");
    CHECK((kills.process.killed == 1 && kills.hung_up));
    Debugger kills_briefly;
    kills_briefly.say("k");
    CHECK((kills_briefly.process.killed == 1 && kills_briefly.answers().empty()));
    Debugger leaves;
    CHECK(leaves.ask("D;100") == "OK");
    CHECK((leaves.process.detached == 1 && leaves.hung_up));
    leaves.server->closed();
    CHECK(leaves.process.detached == 1);
    Debugger vanishes;
    vanishes.say("vCont;c");
    vanishes.server->closed();
    CHECK(vanishes.process.detached == 1);
    vanishes.stops(SIGTRAP);
    CHECK(vanishes.answers().empty());
}

TEST_CASE("commands wait for memory that is far away") {
    Debugger gdb;
    gdb.process.delays = true;
    gdb.say("m1000,1");
    gdb.say("qC");
    CHECK(gdb.answers().empty());
    gdb.process.continue_reads();
    CHECK(gdb.answers() == std::vector<std::string>{"00", "QC100"});
    gdb.say("m1000,1");
    gdb.server.reset();  // the debugger goes away meanwhile
    gdb.process.continue_reads();
    CHECK(gdb.answers().empty());
}

TEST_CASE("monitor commands are answered with text") {
    Debugger gdb;
    gdb.say("qRcmd," + to_hex("gpr threads"));
    CHECK(gdb.answers() == std::vector<std::string>{"O" + to_hex("heard gpr threads\n"), "OK"});
    gdb.say("qRcmd," + to_hex("reset"));
    const auto told = gdb.answers();
    REQUIRE(told.size() == 2);
    CHECK(from_hex(told[0].substr(1))->find("monitor gpr") != std::string::npos);
    CHECK(gdb.ask("qRcmd,1") == "E16");
}

TEST_CASE("files are opened for reading only, and few of them") {
    Debugger gdb;
    auto open = [&](const std::string& path) {
        return gdb.ask("vFile:open:" + to_hex(path) + ",0,0");
    };
    CHECK(gdb.ask("vFile:setfs:0") == "F0");
    CHECK(open("/etc/shadow") == "F-1,2");
    CHECK(gdb.ask("vFile:open:" + to_hex("/bin/fake") + ",1,0") == "F-1,1e");
    CHECK(open("/proc/256/maps") == "F0");
    CHECK(gdb.ask("vFile:pread:0,1000,0") == "F27;" + gdb.process.maps());
    CHECK(gdb.ask("vFile:pread:0,4,5") == "F4;2000");
    CHECK(gdb.ask("vFile:pread:0,4,ffffffffffff") == "F0;");
    const std::string about = gdb.ask("vFile:fstat:0");
    REQUIRE(about.size() == 4 + 64);
    CHECK(about.starts_with("F40;"));
    CHECK(to_hex(std::string_view(about).substr(4 + 28, 8)) == "0000000000000027");
    CHECK(open("/proc/1/maps") == "F-1,2");
    CHECK(open("/bin/fake") == "F1");
    CHECK(gdb.ask("vFile:pread:1,4,0") ==
          "F4;\x7f"
          "ELF");
    CHECK(gdb.ask("vFile:fstat:1").size() == 4 + 64);
    CHECK(gdb.ask("vFile:pread:1,ffffffff,0").size() <= most_packet_bytes);
    CHECK(gdb.ask("vFile:close:0") == "F0");
    CHECK(gdb.ask("vFile:close:0") == "F-1,9");
    CHECK(gdb.ask("vFile:pread:0,1,0") == "F-1,9");
    CHECK(gdb.ask("vFile:readlink:" + to_hex("/proc/256/exe")) == "F9;/bin/fake");
    std::string last;
    for (int i = 0; i < 20; i++) last = open("/bin/fake");
    CHECK(last == "F-1,18");
}

std::string mutated_stream(std::mt19937& random) {
    static const std::string seeds[] = {"qSupported:multiprocess+;swbreak+",
                                        "Z0,1010,1",
                                        "QStartNoAckMode",
                                        "?",
                                        "Hgp100.101",
                                        "g",
                                        "G00",
                                        "p28",
                                        "P10=0001400000000000",
                                        "m1000,100",
                                        "M1000,2:0001",
                                        "X1000,1:a",
                                        "x1000,10",
                                        "vCont;c:p100.-1",
                                        "vCont;S0b:101;c",
                                        "qfThreadInfo",
                                        "qXfer:features:read:target.xml:0,fff",
                                        "qXfer:threads:read::0,fff",
                                        "vFile:open:2f62696e2f66616b65,0,0",
                                        "vFile:pread:0,1000,0",
                                        "vFile:fstat:0",
                                        "qRcmd,67707220",
                                        "QPassSignals:e;14",
                                        "T101",
                                        "c",
                                        "s",
                                        "Hc101",
                                        "D"};
    std::string stream;
    for (unsigned n = random() % 12; n > 0; n--) {
        std::string content = seeds[random() % std::size(seeds)];
        for (unsigned changes = random() % 3; changes > 0; changes--) {
            content[random() % content.size()] = static_cast<char>(random());
        }
        stream += to_packet(content);
        if (random() % 10 == 0) stream += '\x03';
        if (random() % 20 == 0) stream += '$' + std::string(random() % 40000, 'x');
        if (random() % 10 == 0) stream[random() % stream.size()] = static_cast<char>(random());
    }
    return stream;
}

TEST_CASE("whatever comes, the server stays whole and small") {
    std::mt19937 random(20);
    size_t answered = 0;
    for (int round = 0; round < 1000; round++) {
        Debugger gdb(true);
        const std::string stream = mutated_stream(random);
        const size_t piece = 1 + random() % 300;
        for (size_t at = 0; at < stream.size(); at += piece) {
            gdb.server->receive(std::string_view(stream).substr(at, piece));
            if (random() % 4 == 0) gdb.stops(static_cast<int>(random() % 70));
            // No packet is answered with more than a few.
            REQUIRE(gdb.received.size() < 20 * (most_packet_bytes + 8) + 4 * stream.size());
            answered += gdb.answers().size();
        }
        gdb.server->closed();
        CHECK(gdb.process.detached <= 1);
        CHECK(gdb.process.opened.size() <= 12);
    }
    CHECK(answered > 1000);
}

}  // namespace
}  // namespace gpr::debug
