// Questions to the other node that have an answer each, told apart by a number.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "base/task.h"

namespace gpr {

template <class Answer>
class OpenQuestions {
public:
    explicit OpenQuestions(Scheduler& scheduler) : scheduler_(scheduler) {}

    // The number of a new one, which is about to be sent.
    uint32_t begin() {
        if (++last_ == 0) ++last_;
        open_[last_] = std::make_unique<OneShot<Answer>>(scheduler_);
        return last_;
    }

    // Of one that has been begun; once.
    Task<Answer> answer_to(uint32_t number) {
        OneShot<Answer>& given = *open_.at(number);
        Answer answer = co_await given;
        open_.erase(number);
        co_return answer;
    }

    // What nobody has asked, or not any more, is not heard.
    void answer(uint32_t number, Answer answer) {
        auto it = open_.find(number);
        if (it != open_.end()) it->second->set(std::move(answer));
    }

    // The other node is gone: whoever waits for it gets this.
    void answer_all(const Answer& answer) {
        for (const auto& [number, given] : open_) given->set(answer);
    }

private:
    Scheduler& scheduler_;
    uint32_t last_ = 0;
    std::map<uint32_t, std::unique_ptr<OneShot<Answer>>> open_;
};

}  // namespace gpr
