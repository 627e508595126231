// Numbered questions to the other node, each of which gets one answer.
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

    // The number for a question that is about to be sent.
    uint32_t begin() {
        if (++last_ == 0) ++last_;
        open_[last_] = std::make_unique<OneShot<Answer>>(scheduler_);
        return last_;
    }

    // Waits for the answer to a question from begin(); once for each.
    Task<Answer> answer_to(uint32_t number) {
        OneShot<Answer>& given = *open_.at(number);
        Answer answer = co_await given;
        open_.erase(number);
        co_return answer;
    }

    // Ignores an answer that nobody waits for.
    void answer(uint32_t number, Answer answer) {
        auto it = open_.find(number);
        if (it != open_.end()) it->second->set(std::move(answer));
    }

    // The other node is gone: everybody who waits gets this answer.
    void answer_all(const Answer& answer) {
        for (const auto& [number, given] : open_) given->set(answer);
    }

private:
    Scheduler& scheduler_;
    uint32_t last_ = 0;
    std::map<uint32_t, std::unique_ptr<OneShot<Answer>>> open_;
};

}  // namespace gpr
