#include "syscall/rows.h"

namespace gpr {
using namespace rows;
namespace {

// clang-format off
constexpr Row table[] = {
    {29, "shmget", home, full, plain, {num, num, num}},
    {31, "shmctl", home, full, plain, {num, num, raw}},
    {64, "semget", home, full, plain, {num, num, num}},
    {65, "semop", home, full, blocks, {num, narrow(in_n(2, sembuf_size)), num}},
    {66, "semctl", home, full, plain, {num, num, num, raw}},
    {68, "msgget", home, full, plain, {num, num}},
    {69, "msgsnd", home, full, blocks, {num, in_n(2, 1, 8), num, num}},
    {70, "msgrcv", home, full, blocks, {num, out_n(2, 1, 8), num, num, num}},
    {71, "msgctl", home, full, plain, {num, num, raw}},
    {220, "semtimedop", home, full, blocks,
     {num, narrow(in_n(2, sembuf_size)), num, in(timespec_size)}},
    {240, "mq_open", home, full, opens, {text, num, num, in(mq_attr_size)}},
    {241, "mq_unlink", home, full, plain, {text}},
    {242, "mq_timedsend", fd_owner, full, blocks, {fd, in_n(2), num, num, in(timespec_size)}},
    {243, "mq_timedreceive", fd_owner, full, blocks,
     {fd, out_n(2), num, out(4), in(timespec_size)}},
    {244, "mq_notify", fd_owner, full, plain, {fd, raw}},
    {245, "mq_getsetattr", fd_owner, full, plain, {fd, in(mq_attr_size), out(mq_attr_size)}},
    {248, "add_key", home, full, plain, {text, text, in_n(3), num, num}},
    {249, "request_key", home, full, blocks, {text, text, text, num}},
    {250, "keyctl", home, full, plain, {num, raw, raw, raw, raw}},
};
// clang-format on

}  // namespace

std::span<const Row> ipc_rows() { return table; }

}  // namespace gpr
