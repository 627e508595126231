// A process may choose the interface by which its packets leave (SO_BINDTODEVICE, IP_PKTINFO). The
// kernel then sends even packets for 127.0.0.1 or ::1 there, whatever the routes and rules say.
// pasta, which joins the box's network to the host's, opens a socket on the host for each flow, to
// the address in the packet, and would so reach the host's own services. Therefore the interface
// itself drops such packets: tun_net_xmit() in the kernel's drivers/net/tun.c runs the filter
// program before anybody sees a frame. The program belongs to the interface, and changing it takes
// a capability that nothing in the box has.
#include "acceptor/box/box_interface.h"

#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_ether.h>
#include <linux/if_tun.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <span>

#include "base/fd.h"

namespace gpr {
namespace {

constexpr int type_at = 12, ipv4_destination_at = 14 + 16, ipv6_destination_at = 14 + 24;
constexpr int words_of_ipv6 = 4;
// Limits the program so that every jump offset fits.
constexpr size_t most_instructions = INT16_MAX;

class Assembler {
public:
    void copy(uint8_t to, uint8_t from) { add(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0); }
    // Loads into register 0 and clobbers 1 to 5. A load past the end of the frame drops it.
    void load_half(int at) { add(BPF_LD | BPF_ABS | BPF_H, 0, 0, 0, at); }
    void load_word(int at) { add(BPF_LD | BPF_ABS | BPF_W, 0, 0, 0, at); }
    void mask(uint8_t reg, uint32_t bits) {
        add(BPF_ALU | BPF_AND | BPF_K, reg, 0, 0, static_cast<int32_t>(bits));
    }
    void skip_unless_equal(uint8_t reg, uint32_t value, size_t count) {
        add(BPF_JMP32 | BPF_JNE | BPF_K, reg, 0, static_cast<int16_t>(count),
            static_cast<int32_t>(value));
    }
    void drop() { give(0); }
    void pass() { give(-1); }  // keeps all bytes of the frame
    static constexpr size_t length_of_verdict = 2;
    void append(const Assembler& other) {
        code.insert(code.end(), other.code.begin(), other.code.end());
    }

    std::vector<bpf_insn> code;

private:
    void give(int32_t bytes) {
        add(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, bytes);
        add(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
    }
    void add(int code_byte, uint8_t to, uint8_t from, int16_t skip, int32_t value) {
        bpf_insn instruction{};
        instruction.code = static_cast<uint8_t>(code_byte);
        instruction.dst_reg = to & 0xf;
        instruction.src_reg = from & 0xf;
        instruction.off = skip;
        instruction.imm = value;
        code.push_back(instruction);
    }
};

uint32_t word_of(const HostAddress& address, size_t index) {
    uint32_t word = 0;
    for (size_t i = 0; i < 4; ++i) word = word << 8 | address.bytes[4 * index + i];
    return word;
}

Assembler ipv4_frames(const std::vector<HostAddress>& host) {
    Assembler part;
    const auto drop_net = [&](uint32_t net, uint32_t bits) {
        part.copy(BPF_REG_1, BPF_REG_0);
        part.mask(BPF_REG_1, bits);
        part.skip_unless_equal(BPF_REG_1, net, Assembler::length_of_verdict);
        part.drop();
    };
    part.load_word(ipv4_destination_at);
    drop_net(0x00000000, 0xff000000);
    drop_net(0x7f000000, 0xff000000);
    for (const HostAddress& address : host) {
        if (!address.is_ipv6) drop_net(word_of(address, 0), 0xffffffff);
    }
    part.pass();
    return part;
}

Assembler ipv6_frames(const std::vector<HostAddress>& host) {
    Assembler part;
    constexpr uint8_t first = BPF_REG_7, second = BPF_REG_8, third = BPF_REG_9, fourth = BPF_REG_0;
    constexpr std::array<uint8_t, words_of_ipv6> registers{first, second, third, fourth};
    for (int i = 0; i < words_of_ipv6; ++i) {
        part.load_word(ipv6_destination_at + 4 * i);
        const uint8_t kept = registers[static_cast<size_t>(i)];
        if (kept != BPF_REG_0) part.copy(kept, BPF_REG_0);
    }
    const auto drop_words = [&](std::span<const uint32_t> words) {
        for (size_t i = 0; i < words.size(); ++i) {
            const size_t left = words.size() - 1 - i;
            part.skip_unless_equal(registers[i], words[i], left + Assembler::length_of_verdict);
        }
        part.drop();
    };
    // ::, ::1, and IPv4 addresses in the IPv4-compatible and IPv4-mapped forms.
    drop_words(std::array<uint32_t, 3>{0, 0, 0});
    drop_words(std::array<uint32_t, 3>{0, 0, 0xffff});
    for (const HostAddress& address : host) {
        if (!address.is_ipv6) continue;
        drop_words(std::array<uint32_t, 4>{word_of(address, 0), word_of(address, 1),
                                           word_of(address, 2), word_of(address, 3)});
    }
    part.pass();
    return part;
}

Result<Fd> load(const std::vector<bpf_insn>& code) {
    if (code.size() > most_instructions) return fail(E2BIG, "this host has too many addresses");
    bpf_attr attributes{};
    attributes.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
    attributes.insns = reinterpret_cast<uint64_t>(code.data());
    attributes.insn_cnt = static_cast<uint32_t>(code.size());
    attributes.license = reinterpret_cast<uint64_t>("Apache-2.0");
    Fd program(static_cast<int>(syscall(SYS_bpf, BPF_PROG_LOAD, &attributes, sizeof(attributes))));
    if (!program) return fail(errno, "load what keeps a box from its host (bpf)");
    return program;
}

// Best effort: a kernel without IPv6 does not have these files.
void write_setting(const char* path, const std::string& text) {
    const Fd file(open(path, O_WRONLY | O_CLOEXEC));
    if (!file) return;
    [[maybe_unused]] const auto written = write(file.get(), text.data(), text.size());
}

// Turns off duplicate address detection, because nobody else has the box's addresses, and router
// advertisements, which would add addresses.
void settle_namespace(const BoxInterface& wanted) {
    for (const char* const path :
         {"/proc/sys/net/ipv6/conf/all/accept_dad", "/proc/sys/net/ipv6/conf/default/accept_dad",
          "/proc/sys/net/ipv6/conf/default/dad_transmits",
          "/proc/sys/net/ipv6/conf/default/accept_ra"}) {
        write_setting(path, "0");
    }
    write_setting("/proc/sys/net/ipv4/ping_group_range", fmt::format("{0} {0}", wanted.group));
    if (wanted.ports.none()) return;
    write_setting(
        "/proc/sys/net/ipv4/ip_local_port_range",
        fmt::format("{} {}", wanted.ports.first, wanted.ports.first + wanted.ports.count - 1));
}

}  // namespace

std::vector<bpf_insn> frames_to_others(const std::vector<HostAddress>& host) {
    const Assembler ipv4 = ipv4_frames(host), ipv6 = ipv6_frames(host);
    Assembler all;
    all.copy(BPF_REG_6, BPF_REG_1);  // loads expect the frame there
    all.load_half(type_at);
    all.skip_unless_equal(BPF_REG_0, ETH_P_ARP, Assembler::length_of_verdict);
    all.pass();
    all.skip_unless_equal(BPF_REG_0, ETH_P_IP, ipv4.code.size());
    all.append(ipv4);
    all.skip_unless_equal(BPF_REG_0, ETH_P_IPV6, ipv6.code.size());
    all.append(ipv6);
    all.drop();
    return all.code;
}

Result<> make_box_interface(const BoxInterface& wanted) {
    settle_namespace(wanted);
    GPR_TRY(const Fd program, load(frames_to_others(wanted.host)));
    const Fd tun(open("/dev/net/tun", O_RDWR | O_CLOEXEC));
    if (!tun) return fail(errno, "open /dev/net/tun (the kernel's module tun)");
    ifreq request{};
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    wanted.name.copy(request.ifr_name, IFNAMSIZ - 1);
    GPR_CHECK(from_libc(ioctl(tun.get(), TUNSETIFF, &request), "make the box's interface"));
    const int number = program.get();
    GPR_CHECK(from_libc(ioctl(tun.get(), TUNSETFILTEREBPF, &number),
                        "keep the box from its host (TUNSETFILTEREBPF)"));
    GPR_CHECK(from_libc(ioctl(tun.get(), TUNSETPERSIST, 1), "keep the box's interface"));
    return {};
}

}  // namespace gpr
