// The mappings of a new process, as home sends them: in parts, because there may be more than one
// message can hold.
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
    // reader: the receiving node.
    LayoutSender(Link& link, NodeId reader, pid_t pid) : link_(link), reader_(reader), pid_(pid) {}

    // object_pages: the size of the object, for shared memory.
    void add(const Mapping& mapping, uint64_t object_pages);
    void add_absent(Range range);
    void add_copy(ObjectId from, ObjectId to);
    // Sends what has been added and not sent. The message that it belongs to must follow.
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

// The parts that the acceptor has received for processes that have not begun yet.
class LayoutParts {
public:
    using Frame = std::shared_ptr<ReceivedFrame>;
    // Fails if a process has more than is possible, or if too many processes are pending.
    Result<void> add(Frame frame);
    // Removes and returns all parts of this process.
    std::vector<Frame> take(pid_t pid);

private:
    std::map<pid_t, std::vector<Frame>> parts_;
    size_t all_ = 0;  // of all processes
};

}  // namespace gpr
