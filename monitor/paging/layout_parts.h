// The mappings of a process that begins, as home tells them: in parts, because a process may have
// more than one message can hold.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "mm/address_space.h"
#include "transport/link.h"

namespace gpr {

class LayoutSender {
public:
    // reader: the node at the other end.
    LayoutSender(Link& link, NodeId reader, pid_t pid) : link_(link), reader_(reader), pid_(pid) {}

    // object_pages: of shared memory, what the object has.
    void add(const Mapping& mapping, uint64_t object_pages);
    void add_absent(Range range);
    void add_copy(ObjectId from, ObjectId to);
    // What has been added and not sent. The message that it belongs to follows.
    void finish();

private:
    struct Item {
        Mapping mapping;
        uint64_t object_pages = 0;
    };
    void finish_if_full();

    Link& link_;
    NodeId reader_;
    pid_t pid_;
    std::vector<Item> mappings_;
    std::vector<Range> absent_;
    std::vector<std::pair<ObjectId, ObjectId>> copies_;
};

// What the acceptor has been told of processes that have not begun.
class LayoutParts {
public:
    using Frame = std::shared_ptr<ReceivedFrame>;
    // Fails where that is more than any process can have, or more begin than can be.
    Result<void> add(Frame frame);
    // Of this process, all of it, which is forgotten here.
    std::vector<Frame> take(pid_t pid);

private:
    std::map<pid_t, std::vector<Frame>> parts_;
    size_t all_ = 0;  // of all processes
};

}  // namespace gpr
