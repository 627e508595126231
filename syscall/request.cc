#include "syscall/request.h"

#include "syscall/rows.h"

namespace gpr {
namespace {

using namespace shape;

// Codes of asm-generic/ioctls.h and linux/sockios.h. The kernel's struct termios has 36 bytes,
// termios2 44, termio 18.
constexpr Request ioctls[] = {
    {0x5401, "TCGETS", out(36)},
    {0x5402, "TCSETS", in(36)},
    {0x5403, "TCSETSW", in(36)},
    {0x5404, "TCSETSF", in(36)},
    {0x5405, "TCGETA", out(18)},
    {0x5406, "TCSETA", in(18)},
    {0x5407, "TCSETAW", in(18)},
    {0x5408, "TCSETAF", in(18)},
    {0x5409, "TCSBRK", num},
    {0x540a, "TCXONC", num},
    {0x540b, "TCFLSH", num},
    {0x540c, "TIOCEXCL", num},
    {0x540d, "TIOCNXCL", num},
    {0x540e, "TIOCSCTTY", num},
    {0x540f, "TIOCGPGRP", out(4)},
    {0x5410, "TIOCSPGRP", in(4)},
    {0x5411, "TIOCOUTQ", out(4)},
    {0x5412, "TIOCSTI", in(1)},
    {0x5413, "TIOCGWINSZ", out(8)},
    {0x5414, "TIOCSWINSZ", in(8)},
    {0x5415, "TIOCMGET", out(4)},
    {0x5416, "TIOCMBIS", in(4)},
    {0x5417, "TIOCMBIC", in(4)},
    {0x5418, "TIOCMSET", in(4)},
    {0x5419, "TIOCGSOFTCAR", out(4)},
    {0x541a, "TIOCSSOFTCAR", in(4)},
    {0x541b, "FIONREAD", out(4)},
    {0x5420, "TIOCPKT", in(4)},
    {0x5421, "FIONBIO", in(4)},
    {0x5422, "TIOCNOTTY", num},
    {0x5423, "TIOCSETD", in(4)},
    {0x5424, "TIOCGETD", out(4)},
    {0x5425, "TCSBRKP", num},
    {0x5427, "TIOCSBRK", num},
    {0x5428, "TIOCCBRK", num},
    {0x5429, "TIOCGSID", out(4)},
    {0x802c542a, "TCGETS2", out(44)},
    {0x402c542b, "TCSETS2", in(44)},
    {0x402c542c, "TCSETSW2", in(44)},
    {0x402c542d, "TCSETSF2", in(44)},
    {0x80045430, "TIOCGPTN", out(4)},
    {0x40045431, "TIOCSPTLCK", in(4)},
    {0x80045432, "TIOCGDEV", out(4)},
    {0x40045436, "TIOCSIG", num},
    {0x80045438, "TIOCGPKT", out(4)},
    {0x80045439, "TIOCGPTLCK", out(4)},
    {0x5441, "TIOCGPTPEER", num},
    {0x5450, "FIONCLEX", num},
    {0x5451, "FIOCLEX", num},
    {0x5452, "FIOASYNC", in(4)},
    {0x5460, "FIOQSIZE", out(8)},
    {0x8901, "FIOSETOWN", in(4)},
    {0x8902, "SIOCSPGRP", in(4)},
    {0x8903, "FIOGETOWN", out(4)},
    {0x8904, "SIOCGPGRP", out(4)},
    {0x8905, "SIOCATMARK", out(4)},
    {0x8910, "SIOCGIFNAME", inout(40)},
    {0x8913, "SIOCGIFFLAGS", inout(40)},
    {0x8915, "SIOCGIFADDR", inout(40)},
    {0x8919, "SIOCGIFBRDADDR", inout(40)},
    {0x891b, "SIOCGIFNETMASK", inout(40)},
    {0x8921, "SIOCGIFMTU", inout(40)},
    {0x8927, "SIOCGIFHWADDR", inout(40)},
    {0x8933, "SIOCGIFINDEX", inout(40)},
    {0x00000002, "FIGETBSZ", out(4)},
    {0x40049409, "FICLONE", num},
    {0x80086601, "FS_IOC_GETFLAGS", out(4)},
    {0x40086602, "FS_IOC_SETFLAGS", in(4)},
    {0x80081272, "BLKGETSIZE64", out(8)},
    {0x1268, "BLKSSZGET", out(4)},
};

// The kernel's struct flock has 32 bytes, f_owner_ex 8.
constexpr Request fcntls[] = {
    {5, "F_GETLK", inout(32)},
    {6, "F_SETLK", in(32)},
    {7, "F_SETLKW", in(32)},
    {15, "F_SETOWN_EX", in(8)},
    {16, "F_GETOWN_EX", out(8)},
    {17, "F_GETOWNER_UIDS", out(8)},
    {36, "F_OFD_GETLK", inout(32)},
    {37, "F_OFD_SETLK", in(32)},
    {38, "F_OFD_SETLKW", in(32)},
    {1035, "F_GET_RW_HINT", out(8)},
    {1036, "F_SET_RW_HINT", in(8)},
    {1037, "F_GET_FILE_RW_HINT", out(8)},
    {1038, "F_SET_FILE_RW_HINT", in(8)},
};

constexpr Request prctls[] = {
    {2, "PR_GET_PDEATHSIG", out(4)},
    {5, "PR_GET_UNALIGN", out(4)},
    {9, "PR_GET_FPEMU", out(4)},
    {11, "PR_GET_FPEXC", out(4)},
    {15, "PR_SET_NAME", text},
    {16, "PR_GET_NAME", out(16)},
    {19, "PR_GET_ENDIAN", out(4)},
    {25, "PR_GET_TSC", out(4)},
    {35, "PR_SET_MM", raw},
    {37, "PR_GET_CHILD_SUBREAPER", out(4)},
    {40, "PR_GET_TID_ADDRESS", out(8)},
};

Argument find(std::span<const Request> requests, uint32_t code, Argument otherwise) {
    for (const Request& request : requests) {
        if (request.code == code) return request.argument;
    }
    return otherwise;
}

}  // namespace

std::span<const Request> ioctl_requests() { return ioctls; }
std::span<const Request> fcntl_requests() { return fcntls; }
std::span<const Request> prctl_requests() { return prctls; }

Argument ioctl_argument(uint32_t code) { return find(ioctls, code, raw); }
Argument fcntl_argument(uint32_t code) { return find(fcntls, code, num); }
Argument prctl_argument(uint32_t code) { return find(prctls, code, num); }

}  // namespace gpr
