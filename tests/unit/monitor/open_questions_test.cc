// Questions to the other node: each has its own answer, and all have one when the node is gone.
#include "monitor/node/open_questions.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace gpr {
namespace {

class Later : public Scheduler {
public:
    void post(std::function<void()> work) override { work_.push_back(std::move(work)); }
    void run() {
        while (!work_.empty()) {
            auto work = std::move(work_.front());
            work_.pop_front();
            work();
        }
    }

private:
    std::deque<std::function<void()>> work_;
};

struct Asked {
    Later later;
    OpenQuestions<std::string> questions{later};
    std::vector<std::string> heard;

    uint32_t ask() {
        uint32_t number = questions.begin();
        spawn([](Asked& self, uint32_t of) -> Task<void> {
            self.heard.push_back(co_await self.questions.answer_to(of));
        }(*this, number));
        return number;
    }
};

TEST_CASE("answers go to who asked, in any order") {
    Asked asked;
    uint32_t first = asked.ask(), second = asked.ask();
    CHECK(first != second);
    asked.questions.answer(second, "second");
    asked.later.run();
    CHECK(asked.heard == std::vector<std::string>{"second"});
    asked.questions.answer(first, "first");
    asked.questions.answer(second, "again");
    asked.questions.answer(77, "nobody");
    asked.later.run();
    CHECK(asked.heard == std::vector<std::string>{"second", "first"});
}

TEST_CASE("one that is answered before anybody waits") {
    Asked asked;
    uint32_t number = asked.questions.begin();
    asked.questions.answer(number, "early");
    spawn([](Asked& self, uint32_t of) -> Task<void> {
        self.heard.push_back(co_await self.questions.answer_to(of));
    }(asked, number));
    asked.later.run();
    CHECK(asked.heard == std::vector<std::string>{"early"});
}

TEST_CASE("when the other node is gone, nobody waits for it any more") {
    Asked asked;
    asked.ask();
    uint32_t answered = asked.ask();
    asked.ask();
    asked.questions.answer(answered, "known");
    asked.questions.answer_all("gone");
    asked.later.run();
    CHECK(asked.heard.size() == 3);
    CHECK(std::count(asked.heard.begin(), asked.heard.end(), "gone") == 2);
    CHECK(std::count(asked.heard.begin(), asked.heard.end(), "known") == 1);
}

}  // namespace
}  // namespace gpr
