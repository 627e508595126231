#include "monitor/debug/gdb_transfers.h"

#include <algorithm>
#include <string_view>

#include "monitor/debug/gdb_packets.h"
#include "monitor/debug/target_description.h"

namespace gpr::debug {

namespace {
constexpr std::string_view known[] = {"features", "threads", "auxv", "exec-file", "siginfo"};
}  // namespace

std::optional<std::string> GdbTransfers::document(std::string_view object, std::string_view annex) {
    if (object == "features") {
        if (annex != "target.xml") return std::nullopt;
        return target_description(GdbRegisters::of_this_processor());
    }
    if (object == "threads") return threads_.list();
    const GdbProcesses::One* one = threads_.chosen_process();
    if (object == "exec-file" && !annex.empty()) {
        const auto pid = to_number(annex);
        one = pid ? processes_.find(static_cast<pid_t>(*pid)) : nullptr;
    }
    if (!one) return std::nullopt;
    if (object == "auxv") return one->shown().memory().auxv();
    if (object == "exec-file") return one->shown().memory().executable();
    const auto info = one->shown().signal_info(threads_.chosen());
    if (!info) return std::nullopt;
    return std::string(reinterpret_cast<const char*>(&*info), sizeof *info);
}

std::string GdbTransfers::answer(std::string_view request) {
    const std::string_view object = take_until(request, ':');
    const std::string_view operation = take_until(request, ':');
    const std::string_view annex = take_until(request, ':');
    if (std::ranges::find(known, object) == std::end(known) || operation != "read") return "";
    const auto offset = to_number(take_until(request, ','));
    const auto length = to_number(request);
    if (!offset || !length) return "E16";
    if (*offset == 0 || object != object_) {
        auto found = document(object, annex);
        if (!found) return "E00";  // the annex is wrong, or there is no such document now
        object_ = object;
        document_ = std::move(*found);
    }
    const std::string_view rest =
        std::string_view(document_).substr(std::min(*offset, document_.size()));
    const std::string_view piece = that_fit(rest.substr(0, *length), most_packet_bytes - 1);
    return (piece.size() == rest.size() ? "l" : "m") + std::string(piece);
}

}  // namespace gpr::debug
