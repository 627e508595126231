#include "syscall/marshal.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <cstring>

#include "test_memory.h"

namespace gpr {
namespace {

constexpr Address data{0x10000};
constexpr Address bounce{0x7000'0000};
using State = TestMemory::State;

uint64_t operator+(uint64_t a, Address b) { return a + b.value; }

MarshalledCall marshalled(Marshalled outcome) {
    if (auto* raw = std::get_if<RawCall>(&outcome)) FAIL("raw: " << raw->why);
    REQUIRE(std::holds_alternative<MarshalledCall>(outcome));
    return std::get<MarshalledCall>(std::move(outcome));
}

bool is_raw(const Marshalled& outcome) { return std::holds_alternative<RawCall>(outcome); }

struct Home {
    explicit Home(const MarshalledCall& c) : call(c), area(c.bounce_size, std::byte{0xaa}) {
        args = place(call, bounce, memory());
    }
    std::byte* at(uint64_t address) {
        REQUIRE(address >= bounce.value);
        REQUIRE(address < bounce.value + area.size());
        return area.data() + (address - bounce.value);
    }
    template <class T>
    T get(uint64_t address) {
        T value;
        std::memcpy(&value, at(address), sizeof value);
        return value;
    }
    template <class T>
    void put(uint64_t address, const T& value) {
        std::memcpy(at(address), &value, sizeof value);
    }

    HostileMemory memory() { return {area.data(), area.size()}; }

    const MarshalledCall& call;
    std::vector<std::byte> area;
    SyscallArguments args;
};

TEST_CASE("a path travels up to its NUL, also across pages") {
    TestMemory memory;
    memory.map(data, 2 * page_size);
    Address path = data + page_size - 4;
    memory.write(path, "/etc/hosts");
    auto call = marshalled(marshal(SYS_open, {path.value, 0, 0}, memory));
    REQUIRE(call.in_bytes.size() == 11);
    Home home(call);
    CHECK(std::strcmp(reinterpret_cast<char*>(home.at(home.args[0])), "/etc/hosts") == 0);
    CHECK(gather(call, 3, home.memory()).empty());
}

TEST_CASE("the page after a string's NUL need not exist; a missing one is asked for") {
    TestMemory memory;
    memory.map(data, page_size);
    Address path = data + page_size - 2;
    memory.write(path, "a");
    CHECK(marshalled(marshal(SYS_open, {path.value}, memory)).in_bytes.size() == 2);

    memory.map(data + page_size, page_size, State::missing);
    memory.put(path, std::array{'a', 'b'});
    auto outcome = marshal(SYS_open, {path.value}, memory);
    REQUIRE(std::holds_alternative<NeedPages>(outcome));
    auto pages = std::get<NeedPages>(outcome).pages;
    REQUIRE(pages.size() == 1);
    CHECK(pages[0].range == Range{data + page_size, data + 2 * page_size});
    memory.make_resident(pages);
    CHECK(marshalled(marshal(SYS_open, {path.value}, memory)).in_bytes.size() == 3);
}

TEST_CASE("strings longer than PATH_MAX and pointers to nowhere stay raw") {
    TestMemory memory;
    memory.map(data, 4 * page_size);
    std::vector<char> longer(string_limit + 10, 'x');
    memory.write(data, longer.data(), longer.size());
    CHECK(is_raw(marshal(SYS_open, {data.value}, memory)));
    CHECK(is_raw(marshal(SYS_open, {0x100}, memory)));
    CHECK(is_raw(marshal(SYS_open, {~0ull - 5}, memory)));
    CHECK(is_raw(marshal(SYS_read, {0, ~0ull - 5, 100}, memory)));
    CHECK(is_raw(marshal(SYS_write, {1, 0x7fff'ffff'f000, 0x7fff'f000}, memory)));
    CHECK(is_raw(marshal(100000, {}, memory)));
}

TEST_CASE("one pass names every page that is missing") {
    TestMemory memory;
    memory.map(data, page_size);
    memory.map(data + 0x10000, 2 * page_size, State::missing);
    memory.map(data + 0x20000, page_size, State::missing);
    memory.put(data, std::array<iovec, 3>{iovec{reinterpret_cast<void*>(0x10ff0 + data), 32},
                                          iovec{reinterpret_cast<void*>(0 + data), 16},
                                          iovec{reinterpret_cast<void*>(0x20000 + data), 8}});
    auto outcome = marshal(SYS_writev, {1, data.value, 3}, memory);
    REQUIRE(std::holds_alternative<NeedPages>(outcome));
    auto pages = std::get<NeedPages>(outcome).pages;
    REQUIRE(pages.size() == 2);
    CHECK(pages[0].range == Range{data + 0x10000, data + 0x12000});
    CHECK(pages[1].range == Range{data + 0x20000, data + 0x21000});
    memory.make_resident(pages);
    auto call = marshalled(marshal(SYS_writev, {1, data.value, 3}, memory));
    Home home(call);
    CHECK(home.get<uint64_t>(home.args[1]) != 0x10ff0 + data.value);
    CHECK(home.get<uint64_t>(home.args[1] + 8) == 32);
}

TEST_CASE("a read returns what was read and no more") {
    TestMemory memory;
    memory.map(data, page_size);
    memory.write(data, "untouched content");
    auto call = marshalled(marshal(SYS_read, {0, data.value, 100}, memory));
    CHECK(call.in_bytes.empty());
    Home home(call);
    std::memcpy(home.at(home.args[1]), "abc", 3);
    auto out = gather(call, 3, home.memory());
    CHECK(out.size() == 8 + 3);
    auto scattered = scatter(call, out);
    REQUIRE(scattered);
    CHECK(scattered->writable == std::vector<Range>{{data, data + page_size}});
    CHECK(scattered->overwritten.empty());
    memory.apply(*scattered);
    CHECK(memory.get<std::array<char, 10>>(data) ==
          std::array<char, 10>{'a', 'b', 'c', 'o', 'u', 'c', 'h', 'e', 'd', ' '});
    CHECK(gather(call, -EFAULT, home.memory()).empty());
    CHECK(gather(call, 0, home.memory()).empty());
    // A result above the capacity (MSG_TRUNC) gives the whole buffer.
    CHECK(gather(call, 5000, home.memory()).size() == 8 + 100);
}

TEST_CASE("large reads name the pages they replace altogether") {
    TestMemory memory;
    memory.map(data, 8 * page_size);
    auto call = marshalled(marshal(SYS_read, {0, data.value + 100, 4 * page_size}, memory));
    CHECK(call.pieces[0].offset % page_size == 100);
    Home home(call);
    auto out = gather(call, static_cast<long>(3 * page_size), home.memory());
    auto scattered = scatter(call, out);
    REQUIRE(scattered);
    CHECK(scattered->overwritten == std::vector<Range>{{data + page_size, data + 3 * page_size}});
    CHECK(scattered->writable == std::vector<Range>{{data, data + 4 * page_size}});
}

TEST_CASE("calls beyond the bounce area stay raw; its limit is exact") {
    TestMemory memory;
    memory.map(data, bounce_limit + page_size);
    CHECK(marshalled(marshal(SYS_read, {0, data.value, bounce_limit}, memory)).bounce_size ==
          bounce_limit);
    CHECK(is_raw(marshal(SYS_read, {0, data.value, bounce_limit + 1}, memory)));
    CHECK(is_raw(marshal(SYS_read, {0, data.value, 0x7fff'f000}, memory)));
    CHECK(is_raw(marshal(458, {0, data.value, 1ull << 61}, memory)));
    CHECK(is_raw(marshal(SYS_poll, {data.value, 0x20000001, 0}, memory)));
}

TEST_CASE("result buffers that cannot be written stay raw, before the call consumes anything") {
    TestMemory memory;
    memory.map(data, page_size, State::read_only);
    CHECK(is_raw(marshal(SYS_read, {0, data.value, 10}, memory)));
    CHECK(is_raw(marshal(SYS_read, {0, data.value + page_size, 10}, memory)));
    // Missing is not unmapped: the data is not needed.
    memory.map(data, page_size, State::missing);
    CHECK(marshalled(marshal(SYS_read, {0, data.value, 10}, memory)).pieces.size() == 1);
}

TEST_CASE("null pointers stay null and junk above an int is harmless") {
    TestMemory memory;
    memory.map(data, page_size);
    auto call = marshalled(marshal(SYS_accept, {3, 0, 0}, memory));
    CHECK(call.pieces.empty());
    constexpr uint64_t junk = 0xdeadbeef00000000;
    call = marshalled(marshal(SYS_poll, {data.value, junk | 2, 0}, memory));
    REQUIRE(call.pieces.size() == 1);
    CHECK(call.pieces[0].capacity == 2 * sizeof(pollfd));
    call = marshalled(marshal(SYS_fcntl, {junk | 3, junk | F_SETLK, data.value}, memory));
    CHECK(call.in_bytes.size() == sizeof(struct flock));
    call = marshalled(marshal(SYS_fcntl, {3, F_DUPFD, data.value}, memory));
    CHECK(call.pieces.empty());
    CHECK(marshalled(marshal(SYS_ioctl, {3, 0xabcdef, data.value}, memory)).pieces.empty());
}

TEST_CASE("poll writes back nothing but the revents that changed") {
    TestMemory memory;
    memory.map(data, page_size);
    memory.put(data, std::array<pollfd, 3>{pollfd{3, POLLIN, 0}, {4, POLLIN, 0}, {5, POLLOUT, 0}});
    auto call = marshalled(marshal(SYS_poll, {data.value, 3, 1000}, memory));
    Home home(call);
    CHECK(gather(call, 0, home.memory()).empty());
    home.put(home.args[0] + 8 + 6, short{POLLIN});
    auto scattered = scatter(call, gather(call, 1, home.memory()));
    REQUIRE(scattered);
    REQUIRE(scattered->writes.size() == 1);
    CHECK(scattered->writes[0].to >= data + 8 + 6);
    CHECK(scattered->writes[0].to + scattered->writes[0].bytes.size() <= data + 16);
    // Another thread replaced an fd meanwhile: it survives.
    memory.put(data + 8, 77);
    auto out = gather(call, 1, home.memory());
    memory.apply(*scatter(call, out));
    CHECK(memory.get<pollfd>(data + 8).fd == 77);
    CHECK(memory.get<pollfd>(data + 8).revents == POLLIN);
}

TEST_CASE("an fd between two revents that changed is left alone") {
    TestMemory memory;
    memory.map(data, page_size);
    memory.put(data, std::array<pollfd, 2>{pollfd{3, POLLIN, 0}, {4, POLLIN, 0}});
    auto call = marshalled(marshal(SYS_poll, {data.value, 2, 1000}, memory));
    Home home(call);
    home.put(home.args[0] + 6, short{POLLIN});
    home.put(home.args[0] + 14, short{POLLIN});
    memory.put(data + 8, 77);
    auto out = gather(call, 2, home.memory());
    memory.apply(*scatter(call, out));
    CHECK(memory.get<pollfd>(data).revents == POLLIN);
    CHECK(memory.get<pollfd>(data + 8).fd == 77);
    CHECK(memory.get<pollfd>(data + 8).revents == POLLIN);
}

struct Message {
    TestMemory memory;
    msghdr header{};
    Message() {
        memory.map(data, 4 * page_size);
        memory.put(data + 0x100,
                   std::array<iovec, 2>{iovec{reinterpret_cast<void*>(0x1000 + data), 8},
                                        iovec{reinterpret_cast<void*>(0x2000 + data), 100}});
        header.msg_name = reinterpret_cast<void*>(0x200 + data);
        header.msg_namelen = 64;
        header.msg_iov = reinterpret_cast<iovec*>(0x100 + data);
        header.msg_iovlen = 2;
        header.msg_control = reinterpret_cast<void*>(0x300 + data);
        header.msg_controllen = 48;
        memory.put(data, header);
    }
};

TEST_CASE("recvmsg returns name, control, data and the header's results") {
    Message m;
    auto call = marshalled(marshal(SYS_recvmsg, {3, data.value, 0}, m.memory));
    Home home(call);
    auto there = home.get<msghdr>(home.args[1]);
    CHECK(there.msg_namelen == 64);
    auto vectors = home.get<std::array<iovec, 2>>(reinterpret_cast<uint64_t>(there.msg_iov));
    // What the kernel does: 10 bytes of data, a 20 byte name, a 24 byte control message.
    std::memcpy(home.at(reinterpret_cast<uint64_t>(there.msg_name)), "name of twenty bytes", 20);
    std::memcpy(home.at(reinterpret_cast<uint64_t>(there.msg_control)), "control of 24 bytes long",
                24);
    std::memcpy(home.at(reinterpret_cast<uint64_t>(vectors[0].iov_base)), "12345678", 8);
    std::memcpy(home.at(reinterpret_cast<uint64_t>(vectors[1].iov_base)), "9a", 2);
    there.msg_namelen = 20;
    there.msg_controllen = 24;
    there.msg_flags = MSG_TRUNC;
    home.put(home.args[1], there);
    auto out = gather(call, 10, home.memory());
    auto scattered = scatter(call, out);
    REQUIRE(scattered);
    m.memory.apply(*scattered);
    auto result = m.memory.get<msghdr>(data);
    CHECK(result.msg_name == m.header.msg_name);
    CHECK(result.msg_iov == m.header.msg_iov);
    CHECK(result.msg_control == m.header.msg_control);
    CHECK(result.msg_namelen == 20);
    CHECK(result.msg_controllen == 24);
    CHECK(result.msg_flags == MSG_TRUNC);
    auto name = m.memory.get<std::array<char, 21>>(data + 0x200);
    CHECK(std::string(name.data(), 21) == std::string("name of twenty bytes\0", 21));
    auto control = m.memory.get<std::array<char, 24>>(data + 0x300);
    CHECK(std::string(control.data(), 24) == "control of 24 bytes long");
    CHECK(m.memory.get<std::array<char, 2>>(data + 0x1006) == std::array{'7', '8'});
    CHECK(m.memory.get<std::array<char, 3>>(data + 0x2000) == std::array{'9', 'a', '\0'});
    for (const MemoryWrite& w : scattered->writes) CHECK(w.bytes.size() <= 24);
}

TEST_CASE("sendmsg carries everything and brings nothing back") {
    Message m;
    m.memory.write(data + 0x1000, "12345678");
    auto call = marshalled(marshal(SYS_sendmsg, {3, data.value, 0}, m.memory));
    CHECK(call.in_bytes.size() == 56 + 64 + 48 + 32 + 8 + 100);
    Home home(call);
    CHECK(gather(call, 108, home.memory()).empty());
    auto parsed = parse_call(serialise_call(call));
    REQUIRE(parsed);
    CHECK(parsed->in_bytes == call.in_bytes);
}

TEST_CASE("a length that the kernel enlarges is returned, the buffer is not exceeded") {
    TestMemory memory;
    memory.map(data, page_size);
    memory.put(data + 0x80, uint32_t{4});
    auto call = marshalled(marshal(SYS_getsockname, {3, data.value, data.value + 0x80}, memory));
    Home home(call);
    home.put(home.args[1], std::array{'1', '2', '3', '4'});
    home.put(home.args[2], uint32_t{16});
    auto out = gather(call, 0, home.memory());
    memory.apply(*scatter(call, out));
    CHECK(memory.get<uint32_t>(data + 0x80) == 16);
    CHECK(memory.get<std::array<char, 5>>(data) == std::array{'1', '2', '3', '4', '\0'});
    memory.put(data + 0x80, uint32_t(-1));
    CHECK(is_raw(marshal(SYS_getsockname, {3, data.value, data.value + 0x80}, memory)));
    // getsockopt(SOL_SOCKET, SO_GET_FILTER) counts in units of eight bytes.
    memory.put(data + 0x80, uint32_t{4});
    CHECK(is_raw(marshal(SYS_getsockopt,
                         {3, SOL_SOCKET, SO_GET_FILTER, data.value, data.value + 0x80}, memory)));
}

TEST_CASE("the rest of a sleep comes back when it was interrupted, restart codes included") {
    TestMemory memory;
    memory.map(data, page_size);
    auto call = marshalled(marshal(SYS_nanosleep, {data.value, data.value + 16}, memory));
    Home home(call);
    CHECK(gather(call, 0, home.memory()).empty());
    CHECK(gather(call, -EINVAL, home.memory()).empty());
    for (long code : {-EINTR, -512, -516})
        CHECK(gather(call, code, home.memory()).size() == 8 + 16);
    // select's time left: whatever the outcome, if it changed.
    call = marshalled(marshal(SYS_select, {0, 0, 0, 0, data.value}, memory));
    Home selecting(call);
    selecting.put(selecting.args[4], uint64_t{5});
    CHECK(gather(call, -EINTR, selecting.memory()).size() == 8 + 16);
    CHECK(gather(call, 0, selecting.memory()).size() == 8 + 16);
}

TEST_CASE("execve's vectors travel with their strings") {
    TestMemory memory;
    memory.map(data, page_size);
    memory.write(data, "/bin/true");
    memory.write(data + 0x20, "true");
    memory.write(data + 0x30, "X=1");
    memory.put(data + 0x40, std::array<uint64_t, 3>{0x20 + data.value, 0x30 + data.value, 0});
    auto call = marshalled(marshal(SYS_execve, {data.value, 0x40 + data.value, 0}, memory));
    Home home(call);
    CHECK(home.args[2] == 0);
    auto argv = home.get<std::array<uint64_t, 3>>(home.args[1]);
    CHECK(argv[2] == 0);
    CHECK(std::strcmp(reinterpret_cast<char*>(home.at(argv[0])), "true") == 0);
    CHECK(std::strcmp(reinterpret_cast<char*>(home.at(argv[1])), "X=1") == 0);
}

TEST_CASE("raw calls name the ranges they will touch") {
    TestMemory memory;
    memory.map(data, page_size);
    uint64_t at = data.value;
    CHECK(raw_output_ranges(SYS_read, {0, at, 2 << 20}) ==
          std::vector<Range>{{{at}, {at + (2 << 20)}}});
    CHECK(raw_input_ranges(SYS_read, {0, at, 2 << 20}).empty());
    CHECK(raw_input_ranges(SYS_write, {0, at, 100}) == std::vector<Range>{{{at}, {at + 100}}});
    CHECK(raw_input_ranges(SYS_ioctl, {0, 0xabcdef, at}).size() == 1);
    CHECK(raw_ranges(SYS_write, {0, 0, 100}).empty());
    CHECK(raw_ranges(SYS_write, {0, ~0ull, 100}).empty());
    memory.put(data, iovec{reinterpret_cast<void*>(0x5000), 7});
    CHECK(raw_output_ranges(SYS_readv, {0, at, 1}, &memory) ==
          std::vector<Range>{{{0x5000}, {0x5007}}});
    CHECK(raw_output_ranges(SYS_readv, {0, at, 1}).empty());
}

}  // namespace
}  // namespace gpr
