// Pages of shared memory that acceptors have for a moment, where it is used at home.
#pragma once

#include <map>

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

    // What acceptors may have of an object.
    struct Loan {
        bool ending = false;
        bool again = false;  // there was another since it began to end
    };

    Home& home_;
    std::map<ObjectId, Loan> lent_;
};

}  // namespace gpr::home
