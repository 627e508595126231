// What the gdb server does with debug registers, system calls and thread-local variables.
#include <doctest/doctest.h>

#include <cstring>
#include <memory>

#include "monitor/debug/gdb_server.h"
#include "monitor/debug/hardware_breakpoints.h"
#include "tests/unit/monitor/gdb_fake_debuggee.h"

namespace gpr::debug {
namespace {

using Kind = HardwareBreakpoint::Kind;
constexpr pid_t main_tid = FakeDebuggee::its_pid;

struct Debugger {
    FakeDebuggee process;
    std::string received;
    bool hung_up = false;
    GdbServer server{process, [this](std::string bytes) { received += bytes; },
                     [this] { hung_up = true; }};

    Debugger() { CHECK(ask("QStartNoAckMode") == "+OK"); }

    std::string ask(std::string_view content) {
        server.receive(to_packet(content));
        return answer();
    }
    std::string answer() {
        const std::string got = std::exchange(received, "");
        std::string contents = got.starts_with('+') ? "+" : "";
        PacketReader reader;
        std::string_view bytes = got;
        while (auto arrival = reader.next(bytes)) {
            if (arrival->kind == PacketReader::Kind::packet) contents += arrival->content;
        }
        return contents;
    }
    // The end of the stop reply: why the process stopped.
    std::string stops(const StopReason& why) {
        ask("vCont;c");
        server.on_stop(why);
        const std::string reply = answer();
        return reply.substr(reply.find("thread:") + sizeof "thread:" - 1);
    }
};

TEST_CASE("debug registers watch aligned pieces") {
    HardwareBreakpoints all;
    CHECK(all.add({Kind::writing, {0x1001}, 7}));  // 1 + 2 + 4
    CHECK(all.traps().addresses == std::array<uint64_t, 4>{0x1001, 0x1002, 0x1004, 0});
    // Enabled; on writing; of 1, 2 and 4 bytes: Intel SDM, volume 3, figure 18-1.
    CHECK(all.traps().control == (0b010101 | 0b0001ULL << 16 | 0b0101ULL << 20 | 0b1101ULL << 24));
    CHECK(all.traps_and({0x400000})->addresses[3] == 0x400000);
    CHECK(all.traps_and({0x400000})->control == (all.traps().control | 1 << 6));
    CHECK(all.hit(0b100)->at == Address{0x1001});
    CHECK(!all.hit(0b1000));
    CHECK(!all.add({Kind::access, {0x2004}, 8}));  // two pieces, and one is left
    CHECK(all.add({Kind::access, {0x2008}, 8}));
    CHECK((all.traps().control >> 28) == 0b1011);
    CHECK(!all.traps_and({0x400000}));
    CHECK(!all.add({Kind::execution, {0x400000}, 1}));
    all.remove({Kind::writing, {0x1001}, 7});
    CHECK(all.traps().control == (1 | 0b1011ULL << 16));
    CHECK(!all.add({Kind::writing, {0x1000}, 0}));
    CHECK(!all.add({Kind::writing, {0x1000}, ~0ULL}));
    CHECK(all.hit(1)->kind == Kind::access);
    // The same place twice needs one register, and is watched until it is removed twice.
    CHECK((all.add({Kind::writing, {0x8}, 8}) && all.add({Kind::writing, {0x8}, 8})));
    CHECK((all.add({Kind::writing, {0x10}, 16}) && !all.add({Kind::writing, {0x20}, 1})));
    all.remove({Kind::writing, {0x8}, 8});
    CHECK(all.hit(0b10)->at == Address{0x8});
}

TEST_CASE("watchpoints and hardware breakpoints") {
    Debugger gdb;
    CHECK(gdb.ask("Z1,400000,1") == "");  // it would not be told that this has stopped a thread
    CHECK(gdb.ask("qSupported:swbreak+;hwbreak+").find(";hwbreak+") != std::string::npos);
    CHECK(gdb.ask("Z1,400000,1") == "OK");
    CHECK(gdb.ask("Z2,1008,8") == "OK");
    CHECK(gdb.ask("Z3,1010,8") == "");  // no processor of this kind watches for reading alone
    CHECK(gdb.ask("Z4,1010,8") == "OK");
    CHECK(gdb.ask("Z2,1020,9").starts_with("E.gpr: "));
    CHECK(gdb.ask("Z5,1020,4") == "");
    CHECK(gdb.ask("Z2,1020") == "E16");
    StopReason why{StopReason::Kind::signal, main_tid, SIGTRAP};
    why.hardware = {Kind::writing, {0x1008}, 8};
    CHECK(gdb.stops(why) == "100;watch:1008;");
    why.hardware = {Kind::access, {0x1010}, 8};
    CHECK(gdb.stops(why) == "100;awatch:1010;");
    why.hardware = {Kind::execution, {0x400000}, 1};
    CHECK(gdb.stops(why) == "100;hwbreak:;");
    CHECK(gdb.ask("z2,1008,8") == "OK");
    CHECK(gdb.ask("Z2,1020,8") == "OK");
}

TEST_CASE("system calls are caught by number") {
    Debugger gdb;
    CHECK(gdb.ask("qSupported:").find(";QCatchSyscalls+") != std::string::npos);
    CHECK(gdb.ask("QCatchSyscalls:1;27;e7") == "OK");
    CHECK((gdb.process.caught.contains(0x27) && !gdb.process.caught.contains(1)));
    CHECK(gdb.ask("QCatchSyscalls:1") == "OK");
    CHECK(gdb.process.caught.contains(1));
    for (const char* bad :
         {"QCatchSyscalls:", "QCatchSyscalls:2", "QCatchSyscalls:1;x", "QCatchSyscalls:0;1"}) {
        CHECK(gdb.ask(bad) == "E16");
    }
    CHECK(gdb.process.caught.any);
    CHECK(gdb.ask("QCatchSyscalls:0") == "OK");
    CHECK(!gdb.process.caught.contains(1));
    StopReason why{StopReason::Kind::signal, main_tid, SIGTRAP};
    why.call = {0x27, true};
    CHECK(gdb.stops(why) == "100;syscall_entry:27;");
    why.call = {0x27, false};
    CHECK(gdb.stops(why) == "100;syscall_return:27;");
}

TEST_CASE("what gdb has begun it ends") {
    Debugger gdb;
    gdb.process.started = true;
    CHECK(gdb.ask("qAttached:100") == "0");
}

TEST_CASE("thread-local variables are where the C library says") {
    Debugger gdb;
    auto put = [&](uint64_t at, auto value) {
        std::memcpy(gdb.process.content.data() + at - FakeDebuggee::memory_at, &value,
                    sizeof value);
    };
    struct Described {
        uint32_t bits, count, offset;
    };
    put(0x1000, Described{64, 1, 8});  // dtvp in the thread's descriptor
    put(0x1010, Described{128, 0x7fffffff, 0});
    put(0x1020, Described{64, 1, 0});
    put(0x1030, Described{64, 1, 0x40});  // l_tls_modid
    put(0x1100 + 8, uint64_t{0x1210});    // the thread's table
    put(0x1200, uint64_t{3});             // has three entries
    put(0x1220, uint64_t{0x7000});
    put(0x1230, ~uint64_t{0});  // never used
    put(0x1300 + 0x40, uint64_t{1});
    put(0x1400 + 0x40, uint64_t{2});
    put(0x1500 + 0x40, uint64_t{4});
    gdb.process.state[main_tid].general.fs_base = 0x1100;
    CHECK(gdb.ask("qGetTLSAddr:100,10,1300") == "E01");  // gdb has told nothing yet
    std::string asked = gdb.ask("qSymbol::");
    CHECK(asked == "qSymbol:" + to_hex("_thread_db_pthread_dtvp"));
    for (const char* at : {"1000", "1010", "1020"}) {
        asked = gdb.ask("qSymbol:" + std::string(at) + asked.substr(sizeof "qSymbol" - 1));
    }
    CHECK(asked == "qSymbol:" + to_hex("_thread_db_link_map_l_tls_modid"));
    CHECK(gdb.ask("qSymbol:" + asked.substr(sizeof "qSymbol" - 1)) == "OK");  // not found
    CHECK(gdb.ask("qGetTLSAddr:100,10,1300") == "E01");
    asked = gdb.ask("qSymbol::");  // a library has been loaded
    CHECK(gdb.ask("qSymbol:1030" + asked.substr(sizeof "qSymbol" - 1)) == "OK");
    CHECK(gdb.ask("qGetTLSAddr:100,10,1300") == "7010");
    CHECK(gdb.ask("qGetTLSAddr:100,0,1400") == "E01");
    CHECK(gdb.ask("qGetTLSAddr:100,0,1500") == "E01");
    CHECK(gdb.ask("qGetTLSAddr:100,0,9000") == "E01");
    CHECK(gdb.ask("qGetTLSAddr:102,0,1300") == "E03");
    CHECK(gdb.ask("qGetTLSAddr:100,0") == "E16");
    CHECK(gdb.ask("qSymbol:1:zz") == "OK");
}

}  // namespace
}  // namespace gpr::debug
