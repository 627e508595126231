// Shows a user at a terminal when the program waits for the link.
#pragma once

#include <functional>

#include "base/side_writer.h"
#include "transport/link.h"
#include "transport/loop.h"

namespace gpr {

class Progress {
public:
    // waits_for_pages: whether a thread here waits for a page. Does nothing without a terminal. All
    // arguments must outlive this object.
    Progress(Loop& loop, Link& link, SideWriter& user, std::function<bool()> waits_for_pages);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

private:
    void look();
    void tell();

    Loop& loop_;
    Link& link_;
    SideWriter& user_;
    std::function<bool()> waits_for_pages_;
    Loop::TimerId timer_ = 0;
    LinkStats seen_;       // at the latest look
    LinkStats first_;      // when the transfer began
    unsigned looks_ = 0;   // since the transfer began; 0: there is none
    unsigned pauses_ = 0;  // consecutive looks at which nothing was in transit
};

}  // namespace gpr
