#include "monitor/tracee/requeued_signals.h"

#include <doctest/doctest.h>

using namespace gpr;

namespace {

siginfo_t signal_with(int number, int value) {
    siginfo_t info{};
    info.si_signo = number;
    info.si_code = SI_QUEUE;
    info.si_value.sival_int = value;
    return info;
}

// As the kernel has them: each delivery takes the first, a requeued one becomes the last.
struct Queue {
    RequeuedSignals requeued;
    std::deque<siginfo_t> kernel;

    void requeue_first() {
        siginfo_t first = take();
        kernel.push_back(first);
        requeued.add(first);
    }
    int deliver() { return take().si_value.sival_int; }

private:
    siginfo_t take() {
        siginfo_t first = kernel.front();
        kernel.pop_front();
        return requeued.next(first, kernel.empty());
    }
};

}  // namespace

TEST_CASE("what was requeued comes before what came later") {
    for (int times = 0; times < 12; times++) {
        Queue queue;
        for (int i = 0; i < 5; i++) queue.kernel.push_back(signal_with(40, i));
        for (int i = 0; i < times; i++) queue.requeue_first();
        for (int i = 0; i < 5; i++) CHECK(queue.deliver() == i);
        CHECK(!queue.requeued.has(40));
    }
}

TEST_CASE("signals that come and are requeued between deliveries keep their order") {
    Queue queue;
    int sent = 0;
    auto send = [&] { queue.kernel.push_back(signal_with(34, sent++)); };
    send(), send(), send();
    queue.requeue_first();
    CHECK(queue.deliver() == 0);
    send();
    CHECK(queue.deliver() == 1);
    send(), send();
    CHECK(queue.deliver() == 2);
    queue.requeue_first();
    send();
    queue.requeue_first();
    queue.requeue_first();
    for (int i = 3; i < sent; i++) CHECK(queue.deliver() == i);
    CHECK(!queue.requeued.has(34));
}

TEST_CASE("numbers do not mix, and standard signals have no order to keep") {
    RequeuedSignals requeued;
    requeued.add(signal_with(35, 1));
    requeued.add(signal_with(SIGUSR1, 7));
    CHECK(!requeued.has(SIGUSR1));
    CHECK(requeued.next(signal_with(36, 2), false).si_value.sival_int == 2);
    CHECK(requeued.next(signal_with(SIGUSR1, 3), true).si_value.sival_int == 3);
    CHECK(requeued.next(signal_with(35, 1), true).si_value.sival_int == 1);
}

TEST_CASE("a requeued signal that somebody waited for is not delivered as well") {
    RequeuedSignals requeued;
    requeued.add(signal_with(35, 1));
    CHECK(requeued.next(signal_with(35, 2), true).si_value.sival_int == 2);
    CHECK(!requeued.has(35));
}
