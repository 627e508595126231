// Tells a user at a terminal when it is the link that the program waits for.
#pragma once

#include <functional>

#include "base/side_writer.h"
#include "transport/link.h"
#include "transport/loop.h"

namespace gpr {

class Progress {
public:
    // waits_for_pages: a thread here does. Nothing is looked at where there is no terminal. All of
    // them must outlive it.
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
    LinkStats seen_;       // at the last look
    LinkStats first_;      // when the transfer began
    unsigned looks_ = 0;   // since then; 0: there is none
    unsigned pauses_ = 0;  // looks in a row at which nothing was under way
};

}  // namespace gpr
