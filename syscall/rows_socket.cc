#include "syscall/rows.h"

namespace gpr {
using namespace rows;
namespace {

constexpr Argument address_length = inout(4);

// clang-format off
constexpr Row table[] = {
    {41, "socket", home, full, opens | by_rule, {num, num, num}},
    {42, "connect", fd_owner, full, blocks, {fd, narrow(in_n(2)), num}},
    {43, "accept", fd_owner, full, blocks | opens, {fd, sized_by(2), address_length}},
    {44, "sendto", fd_owner, full, blocks, {fd, in_n(2), num, num, narrow(in_n(5)), num}},
    {45, "recvfrom", fd_owner, full, blocks,
     {fd, out_n(2), num, num, sized_by(5), address_length}},
    {46, "sendmsg", fd_owner, full, blocks, {fd, msghdr_in, num}, "", {there::send_message},
     gives_back_all},
    {47, "recvmsg", fd_owner, full, blocks | opens, {fd, msghdr_out, num}},
    {48, "shutdown", fd_owner, full, plain, {fd, num}},
    {49, "bind", fd_owner, full, plain, {fd, narrow(in_n(2)), num}},
    {50, "listen", fd_owner, full, plain, {fd, num}},
    {51, "getsockname", fd_owner, full, plain, {fd, sized_by(2), address_length}},
    {52, "getpeername", fd_owner, full, plain, {fd, sized_by(2), address_length}},
    {53, "socketpair", home, full, opens | by_rule, {num, num, num, out(8)}},
    {54, "setsockopt", fd_owner, full, plain, {fd, num, num, narrow(in_n(4)), num},
     "pointers inside an option use the program's memory through coherence", {there::pin}},
    // Some options are read before they are written (TCP_ZEROCOPY_RECEIVE).
    {55, "getsockopt", fd_owner, full, plain, {fd, num, num, sized_by_inout(4), inout(4)}},
    {288, "accept4", fd_owner, full, blocks | opens, {fd, sized_by(2), address_length, num}},
    {299, "recvmmsg", fd_owner, full, blocks | opens,
     {fd, raw, num, num, inout(timespec_size, Returned::always)},
     "the message vector uses the program's memory through coherence"},
    {307, "sendmmsg", fd_owner, full, blocks, {fd, raw, num, num},
     "the message vector uses the program's memory through coherence", {there::send_message},
     gives_back_all},
};
// clang-format on

}  // namespace

std::span<const Row> socket_rows() { return table; }

}  // namespace gpr
