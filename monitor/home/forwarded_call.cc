#include "monitor/home/forwarded_call.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace gpr {

Result<ForwardedCall> ForwardedCall::parse(ReceivedFrame& frame) {
    auto request = frame.session().getCall();
    ForwardedCall call;
    call.number = request.getNumber();
    for (unsigned i = 0; i < 6 && i < request.getArgs().size(); i++) {
        call.given[i] = request.getArgs()[i];
    }
    call.row = find_row(call.number);
    call.repeatable = request.getRepeatable();
    call.wants_reply = !request.getNoReply();
    call.may_delegate = request.getMayDelegate();
    call.may_remember = request.getMayRemember();
    call.file = request.getFile();
    call.made.number = call.number;
    std::copy(call.given.begin(), call.given.end(), call.made.args);
    if (frame.raw().empty()) return call;
    GPR_TRY(call.marshalled, parse_call(frame.raw()));
    return call;
}

void ForwardedCall::place() {
    bounce_at_ = Mailbox::bounce_address(shadow->slot());
    bounce_ = shadow->bounce();
    if (!marshalled) return;
    auto args = gpr::place(*marshalled, bounce_at_, bounce_);
    std::copy(args.begin(), args.end(), made.args);
}

std::vector<std::byte> ForwardedCall::gather() const {
    if (!marshalled) return {};
    return gpr::gather(*marshalled, made.result, bounce_);
}

HostileMemory ForwardedCall::bytes(uint64_t at, size_t size) const {
    return bytes_in(bounce_at_, bounce_, at, size);
}

bool ForwardedCall::reaches_anywhere() const {
    return !marshalled || (row && row->points_anywhere(given));
}

std::string_view ForwardedCall::name() const {
    if (!marshalled) return {};
    const auto& bytes = marshalled->in_bytes;
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

uint64_t most_to_move(pid_t pid, const ForwardedCall& call, bool fills) {
    // The default capacity of pipes and socket buffers; also for files of /proc, which have no
    // size.
    constexpr uint64_t at_least = 256 << 10;
    constexpr uint64_t unknown = UINT64_MAX / 2;
    if (!call.row || call.row->arguments[0].kind != Kind::fd) {
        const uint32_t most = details_of(call.number).fills_most;
        return fills && most != 0 ? most : unknown;
    }
    auto link = fmt::format("/proc/{}/fd/{}", pid, static_cast<int>(call.given[0]));
    struct stat itself {};  // the link's permissions show what the descriptor is open for
    if (lstat(link.c_str(), &itself) != 0) return errno == ENOENT ? 0 : at_least;
    if (call.row->details.transfer.writes && !(itself.st_mode & S_IWUSR)) return 0;
    struct statx file {};  // from the cache: the program itself may serve the file system
    unsigned wanted = STATX_TYPE | STATX_SIZE;
    if (statx(AT_FDCWD, link.c_str(), AT_STATX_DONT_SYNC, wanted, &file) != 0) return at_least;
    if (S_ISCHR(file.stx_mode) || S_ISBLK(file.stx_mode)) return unknown;
    if (!S_ISREG(file.stx_mode)) return at_least;
    return fills ? std::max<uint64_t>(at_least, file.stx_size) : unknown;
}

}  // namespace gpr
