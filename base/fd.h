// An owned file descriptor.
#pragma once

#include <unistd.h>

#include <utility>

namespace gpr {

class Fd {
public:
    Fd() = default;
    explicit Fd(int raw) : raw_(raw) {}
    Fd(Fd&& other) noexcept : raw_(std::exchange(other.raw_, -1)) {}
    Fd& operator=(Fd&& other) noexcept {
        if (this != &other) {
            reset();
            raw_ = std::exchange(other.raw_, -1);
        }
        return *this;
    }
    Fd(const Fd&) = delete;
    Fd& operator=(const Fd&) = delete;
    ~Fd() { reset(); }

    [[nodiscard]] int get() const { return raw_; }
    [[nodiscard]] int release() { return std::exchange(raw_, -1); }
    [[nodiscard]] explicit operator bool() const { return raw_ >= 0; }
    void reset() {
        if (raw_ >= 0) ::close(raw_);
        raw_ = -1;
    }

private:
    int raw_ = -1;
};

}  // namespace gpr
