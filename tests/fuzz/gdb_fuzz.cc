// A debugger that sends anything: the gdb server answers or hangs up, its process is detached once
// at most, and no answer is longer than a packet may be.
#include <algorithm>
#include <cstdlib>

#include "fuzz.h"
#include "monitor/debug/gdb_server.h"
#include "tests/unit/monitor/gdb_fake_debuggee.h"

namespace gpr::fuzz {

namespace {

uint64_t answered = 0;
uint64_t refused = 0;

// Each may be escaped, and there are four more around it. Files and documents are cut by their
// escaped length, so this is generous.
constexpr size_t longest_answer = 2 * debug::most_packet_bytes + 4;

// Packets are separated by line ends: mutations should get past the checksum.
Bytes lines(std::initializer_list<std::string_view> packets) {
    Bytes bytes;
    for (std::string_view content : packets) {
        bytes.insert(bytes.end(), content.begin(), content.end());
        bytes.push_back('\n');
    }
    return bytes;
}

std::string to_stream(std::span<const uint8_t> input) {
    std::string_view rest(reinterpret_cast<const char*>(input.data()), input.size());
    std::string stream;
    while (!rest.empty()) stream += debug::to_packet(debug::take_until(rest, '\n'));
    // Some should not.
    if (input.size() % 4 == 0 && !stream.empty()) {
        stream[input.size() * 7919 % stream.size()] = static_cast<char>(input[0]);
    }
    return stream;
}

}  // namespace

std::vector<Bytes> seeds() {
    return {
        lines({"qSupported:multiprocess+;vContSupported+", "vMustReplyEmpty", "QStartNoAckMode"}),
        lines({"QStartNoAckMode", "Hgp100.101", "g", "p10", "P10=0102030405060708", "?"}),
        lines({"qXfer:features:read:target.xml:0,fff", "qXfer:threads:read::0,fff",
               "qXfer:auxv:read::0,1000", "qXfer:siginfo:read::0,1000"}),
        lines({"m1000,40", "M1000,4:01020304", "X1000,3:abc", "x1000,1000", "m1ff0,40"}),
        lines({"vCont?", "vCont;s:p100.101;c:p100.-1", "qC", "vCont;C0b:101;t"}),
        lines({"QPassSignals:e;14;2f", "QProgramSignals:1;2", "Hc-1", "c", "s", "C0b", "S05"}),
        lines({"qfThreadInfo", "qsThreadInfo", "qThreadExtraInfo,101", "T100", "qAttached:100"}),
        lines({"vFile:setfs:0", "vFile:open:2f62696e2f66616b65,0,1c0", "vFile:fstat:0",
               "vFile:pread:0,3fff,0", "vFile:close:0",
               "vFile:open:2f70726f632f3235362f6d617073,0,0", "vFile:pread:0,47ff,0"}),
        lines({"qSupported:multiprocess+;swbreak+;hwbreak+;fork-events+;vfork-events+",
               "Z1,400000,1", "Z2,1001,7", "Z4,1010,8", "z2,1001,7", "QCatchSyscalls:1;27;e7",
               "vCont;c", "Hgp200.200", "z0,1000,1", "D;200", "QCatchSyscalls:0"}),
        lines({"qSupported:multiprocess+;swbreak+;fork-events+;vfork-events+;exec-events+",
               "vCont;c:p100.-1", "Hgp200.200", "z0,1010,1", "m1000,4", "vCont;c:p200.-1",
               "vCont;c", "qXfer:threads:read::0,fff", "Hgp200.0", "g", "vKill;200", "D;100"}),
        lines({"qSymbol::", "qSymbol:1000:5f7468726561645f64625f707468726561645f64747670",
               "qGetTLSAddr:p100.101,10,1300"}),
        lines({"qRcmd,6770722074687265616473", "D;100"}),
        lines({"G" + std::string(4000, '0'), "vKill;100", "k"}),
        lines({std::string(debug::most_packet_bytes + 9, 'm'), "qC"}),
    };
}

void one_input(std::span<const uint8_t> input) {
    debug::FakeDebuggee process;
    const auto child = std::make_shared<debug::FakeDebuggee>(0x200);
    bool child_told = false, ended = false, child_ended = false;
    bool hung_up = false;
    debug::GdbServer server(
        process,
        [](const std::string& bytes) {
            if (bytes.size() > longest_answer) abort();
            answered += bytes.size() > 1;
        },
        [&] { hung_up = true; });
    const std::string stream = to_stream(input);
    const size_t piece = 1 + input.size() % 1000;
    for (size_t at = 0; at < stream.size(); at += piece) {
        server.receive(std::string_view(stream).substr(at, piece));
        const int signal = static_cast<uint8_t>(stream[at]) % 70;
        debug::StopReason why{debug::StopReason::Kind::signal, 0x101, signal};
        if (signal % 5 == 1 && !child_told) {
            why.fork = {0x200, signal % 2 == 0, signal % 3 == 0, nullptr};
            if (!why.fork->is_over) why.fork->process = child;
        }
        if (signal % 7 == 3 && !why.fork) why.pid = 0x200;
        if (signal % 11 == 4) why = {debug::StopReason::Kind::exited, 0x101, signal};
        if (signal % 22 == 4) why.pid = 0x200;
        if (signal % 5 == 2) why.call = {static_cast<uint64_t>(signal), signal % 2 == 0};
        if (at % 3 != 0) continue;
        child_told = child_told || (why.fork && why.fork->process);
        (why.pid == 0 ? ended : child_ended) |= debug::has_ended(why);
        server.on_stop(why);
    }
    refused += hung_up;
    server.closed();
    if (process.detached + process.killed > 1) abort();
    if (child->detached + child->killed > 1) abort();
    // Nobody would let it go on.
    if (!ended && process.detached + process.killed == 0) abort();
    if (child_told && !child_ended && child->detached + child->killed == 0) abort();
}

bool summarize(std::string& line) {
    line = std::to_string(answered) + " answers, " + std::to_string(refused) +
           " conversations ended by the server";
    return answered > 1000 && refused > 100;
}

}  // namespace gpr::fuzz
