// DebuggedProcess: children, which wait for the debugger of their parent from their birth on.
#include "monitor/home/debugged_process.h"
#include "monitor/home/home.h"
#include "monitor/tracee/context_raw.h"

namespace gpr::home {

std::shared_ptr<DebuggedProcess> DebuggedProcess::for_child(pid_t child, bool shares_memory) {
    const bool told = !is_child_ && !leaves_ && state_ != State::over;
    if (told && traps_.catches_child(shares_memory)) {
        auto there = shares_memory ? debug::Breakpoints() : memory_->breakpoints();
        auto its = std::make_shared<DebuggedProcess>(home_, child, started_, std::move(there));
        its->waits_ = false;
        its->tell_ = tell_;
        its->inherits_ = !shares_memory;
        its->state_ = shares_memory ? State::sharing : State::newborn;
        its->traps_.catch_forks(traps_.catches_child(false), traps_.catches_child(true));
        births_.bear(child, its);
        return its;
    }
    if (shares_memory || memory_->breakpoints().empty()) return nullptr;
    auto its = std::make_shared<DebuggedProcess>(home_, child, false, memory_->breakpoints());
    its->is_child_ = its->leaves_ = true;
    return its;
}

DebuggedProcess::Birth DebuggedProcess::birth() const {
    if (state_ == State::newborn) return Birth::waits;
    if (!inherits_ || is_child_) return Birth::over;
    return state_ == State::over ? Birth::died : Birth::wanted;
}

bool DebuggedProcess::takes_newborn(HomeThread& thread, const ThreadContext& context) {
    if (!inherits_ || (state_ != State::newborn && state_ != State::stopping)) return false;
    if (leaves_) {
        is_child_ = true;
        state_ = State::running;
        return false;
    }
    thread.process->comes_home = true;
    thread.goes_on_with = std::make_unique<ThreadContext>(context);
    places_ = {{thread.tid, directory_node}};
    state_ = State::stopped;
    home_.remote_changed.notify_all();
    return true;
}

// It is split only now: most children are let go at once, and many call exec soon.
Task<bool> DebuggedProcess::prepare() {
    std::shared_ptr<DebuggedProcess> self = shared_from_this();
    if (state_ == State::newborn) {
        state_ = State::stopping;
        home_.remote_changed.notify_all();
    }
    while ((state_ == State::stopping || state_ == State::sharing) && home_.find_process(pid_)) {
        co_await home_.remote_changed.wait();
    }
    if (state_ == State::stopped && std::exchange(inherits_, false)) {
        for (const Address at : memory_->breakpoints().all()) {
            co_await memory_->set_breakpoint(at, false);
        }
    }
    co_return state_ == State::stopped;
}

void DebuggedProcess::on_child(const HomeThread* parent, pid_t child, bool shares_memory) {
    if (is_child_) return;
    auto why = births_.on_child(parent ? parent->tid : 0, child, shares_memory, traps_);
    if (leaves_ || state_ == State::over) return births_.release();
    if (!why) return;
    if (state_ == State::running && process()) {
        begin_stop(*why);
    } else {
        why->pid = pid_;
        births_.put_off(*why);
    }
}

}  // namespace gpr::home
