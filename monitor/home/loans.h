// Pages of shared memory that the acceptor has for a moment, where it is used at home.
#pragma once

#include "mm/page_protocol.h"
#include "monitor/home/part.h"

namespace gpr::home {

class Loans {
public:
    explicit Loans(Home& home) : home_(home) {}

    void note_loan(ObjectId object);
    Task<void> end_loans();

private:
    Task<void> end_loan(ObjectId object);

    Home& home_;
};

}  // namespace gpr::home
