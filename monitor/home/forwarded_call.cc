#include "monitor/home/forwarded_call.h"

#include <algorithm>

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

}  // namespace gpr
