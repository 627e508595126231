// What an acceptor may do from now on without asking home, as the answer to a call tells it.
#pragma once

#include <optional>

#include "mm/page_protocol.h"
#include "transport/wire.h"

namespace gpr {
class FrameBuilder;
}  // namespace gpr

namespace gpr::home {

struct OfferedFile;
struct OfferedLookup;

struct Promises {
    const OfferedFile* opened = nullptr;   // answer for a file
    const OfferedLookup* known = nullptr;  // repeat the answer
    // Move the break: Layouts::object_to_continue.
    std::optional<ObjectId> break_object = std::nullopt;

    // frame: of the answer, which must not outlive what is pointed to.
    void put(wire::CallReply::Builder answer, FrameBuilder& frame) const;
};

}  // namespace gpr::home
