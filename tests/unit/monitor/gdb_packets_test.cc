#include "monitor/debug/gdb_packets.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <vector>

#include "monitor/debug/gdb_signals.h"

namespace gpr::debug {
namespace {

using Kind = PacketReader::Kind;

std::vector<PacketReader::Arrival> read_all(PacketReader& reader, std::string_view bytes) {
    std::vector<PacketReader::Arrival> arrivals;
    while (auto arrival = reader.next(bytes)) arrivals.push_back(std::move(*arrival));
    CHECK(bytes.empty());
    return arrivals;
}

TEST_CASE("a packet goes out with a checksum, and with escapes where bytes have a meaning") {
    CHECK(to_packet("") == "$#00");
    CHECK(to_packet("OK") == "$OK#9a");
    CHECK(to_packet("a#b") ==
          "$a}\x03"
          "b#43");
    CHECK(that_fit("a#bc", 3) == "a#");
    CHECK(that_fit("a#bc", 2) == "a");
    CHECK(that_fit("abc", 9) == "abc");
}

TEST_CASE("what goes out comes in, wherever it is cut") {
    std::string every;
    for (int byte = 0; byte < 256; byte++) every += static_cast<char>(byte);
    const std::string sent = "+" + to_packet(every) + "\x03" + to_packet("g") + "-";
    for (size_t piece = 1; piece < 9; piece++) {
        PacketReader reader;
        std::vector<PacketReader::Arrival> got;
        for (size_t at = 0; at < sent.size(); at += piece) {
            for (auto& one : read_all(reader, std::string_view(sent).substr(at, piece))) {
                got.push_back(std::move(one));
            }
        }
        REQUIRE(got.size() == 5);
        CHECK(got[0].kind == Kind::acknowledged);
        CHECK(got[1].content == every);
        CHECK(got[2].kind == Kind::interrupt);
        CHECK(got[3].content == "g");
        CHECK(got[4].kind == Kind::not_received);
    }
}

TEST_CASE("noise is ignored and damage is seen") {
    PacketReader reader;
    CHECK(read_all(reader, "GET / HTTP/1.0\r\n").empty());
    auto wrong = read_all(reader, "$OK#9b$OK#zz");
    REQUIRE(wrong.size() == 2);
    CHECK(wrong[0].kind == Kind::damaged);
    CHECK(wrong[1].kind == Kind::damaged);
    auto again = read_all(reader, "$lost end$OK#9a");
    REQUIRE(again.size() == 1);
    CHECK(again[0].content == "OK");
}

TEST_CASE("a packet has a longest length") {
    PacketReader reader;
    auto longest = read_all(reader, to_packet(std::string(most_packet_bytes, 'a')));
    REQUIRE(longest.size() == 1);
    CHECK(longest[0].content.size() == most_packet_bytes);
    auto more = read_all(reader, to_packet(std::string(most_packet_bytes + 1, 'a')));
    REQUIRE(more.size() == 1);
    CHECK(more[0].kind == Kind::too_long);
    CHECK(more[0].content.empty());
    auto next = read_all(reader, "$OK#9a");
    REQUIRE(next.size() == 1);
    CHECK(next[0].content == "OK");
}

TEST_CASE("hexadecimal digits") {
    CHECK(to_hex("\x01\xffz") == "01ff7a");
    CHECK(from_hex("01FF7a") == "\x01\xffz");
    CHECK_FALSE(from_hex("0"));
    CHECK_FALSE(from_hex("0g"));
    CHECK(to_number("7fFF") == 0x7fff);
    CHECK_FALSE(to_number(""));
    CHECK_FALSE(to_number("-1"));
    CHECK_FALSE(to_number("1 "));
    CHECK_FALSE(to_number("11112222333344445"));
    std::string_view text = "a;b";
    CHECK(take_until(text, ';') == "a");
    CHECK(take_until(text, ';') == "b");
    CHECK(text.empty());
}

TEST_CASE("every signal has a number of gdb's and comes back") {
    CHECK(to_gdb_signal(SIGSEGV) == 11);
    CHECK(to_gdb_signal(SIGUSR1) == 30);
    CHECK(to_gdb_signal(SIGCHLD) == 20);
    CHECK(to_gdb_signal(SIGSTOP) == 17);
    CHECK(to_gdb_signal(32) == 77);
    CHECK(to_gdb_signal(34) == 46);
    CHECK(to_gdb_signal(64) == 78);
    CHECK(to_gdb_signal(65) == 143);
    for (int signal = 0; signal <= 64; signal++) {
        CHECK(from_gdb_signal(to_gdb_signal(signal)) == signal);
    }
    CHECK(from_gdb_signal(7) == 0);  // SIGEMT
}

}  // namespace
}  // namespace gpr::debug
