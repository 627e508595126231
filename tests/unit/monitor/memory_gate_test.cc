// What calls that change mappings have to pass: the window of changes under way, and seals.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <functional>
#include <string_view>

#include "monitor/home/shared_identity.h"
#include "monitor/node/change_window.h"
#include "monitor/tracee/sealed_memory.h"

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

class CountingLink : public Link {
public:
    void send(FrameBuilder&, Priority) override { sent_++; }
    void hold() override {}
    void release() override {}
    [[nodiscard]] uint64_t queued_bytes() const override { return 0; }
    void close(std::string) override {}
    [[nodiscard]] const std::string& peer_name() const override { return name_; }
    [[nodiscard]] uint32_t sent() const { return sent_; }

private:
    std::string name_ = "nobody";
    uint32_t sent_ = 0;
};

uint32_t take_all(ChangeWindow& window, Link& link, uint32_t most = 1000) {
    uint32_t taken = 0;
    while (taken < most && window.take(link, 1)) taken++;
    return taken;
}

constexpr uint64_t base = 0x10000;

// A letter a page: w writable, r read-only, s shared and read-only; sealed in capitals.
AddressSpace space_of(std::string_view plan) {
    AddressSpace space;
    for (uint64_t i = 0; i < plan.size(); i++) {
        if (plan[i] == '-') continue;
        Mapping m;
        m.range = {{base + i * page_size}, {base + (i + 1) * page_size}};
        m.sealed = plan[i] >= 'A' && plan[i] <= 'Z';
        m.prot = plan[i] == 'w' || plan[i] == 'W' ? PROT_READ | PROT_WRITE : PROT_READ;
        m.shared = plan[i] == 's' || plan[i] == 'S';
        m.object = static_cast<ObjectId>(i + 1);
        space.map(m);
    }
    return space;
}

int64_t answer(std::string_view plan, uint64_t number, uint64_t first, uint64_t pages,
               uint64_t third = 0, uint64_t fourth = 0, uint64_t fifth_page = 0) {
    const uint64_t args[] = {base + first * page_size,
                             pages * page_size,
                             third,
                             fourth,
                             base + fifth_page * page_size,
                             0};
    return answer_about_sealed(space_of(plan), number, args).value_or(0);
}

TEST_CASE("changes wait when too many are under way, and go on when the oldest are applied") {
    Later later;
    CountingLink link;
    ChangeWindow window(later);
    constexpr uint32_t all = ChangeWindow::calls_per_mark * ChangeWindow::most_marks;
    CHECK(take_all(window, link) == all);
    CHECK(link.sent() == ChangeWindow::most_marks);
    bool moved = false;
    spawn([](ChangeWindow& w, bool& done) -> Task<void> {
        co_await w.moved();
        done = true;
    }(window, moved));
    later.run();
    CHECK_FALSE(moved);
    window.applied(1);
    later.run();
    CHECK(moved);
    CHECK(take_all(window, link) == ChangeWindow::calls_per_mark);
    window.applied(ChangeWindow::most_marks + 1);
    CHECK(take_all(window, link) == all);
}

TEST_CASE("what a peer says to have applied and was never told opens no window") {
    Later later;
    CountingLink link;
    ChangeWindow window(later);
    take_all(window, link);
    window.applied(1000);
    CHECK(take_all(window, link) == 0);
    window.applied(0);
    CHECK(take_all(window, link) == 0);
    window.close();
    CHECK(take_all(window, link, 1) == 1);
}

TEST_CASE("a seal forbids what changes mappings, wherever a part of the range is sealed") {
    CHECK(answer("wWw", SYS_munmap, 0, 3) == -EPERM);
    CHECK(answer("wWw", SYS_munmap, 0, 1) == 0);
    CHECK(answer("wWw", SYS_mprotect, 1, 1, PROT_READ) == -EPERM);
    CHECK(answer("wWw", SYS_pkey_mprotect, 2, 1, PROT_READ) == 0);
    CHECK(answer("wWw", SYS_mmap, 0, 2, PROT_READ, MAP_PRIVATE | MAP_FIXED) == -EPERM);
    CHECK(answer("wWw", SYS_mmap, 0, 2, PROT_READ, MAP_PRIVATE) == 0);
    CHECK(answer("wWw", SYS_mremap, 1, 1, 2 * page_size, MREMAP_MAYMOVE) == -EPERM);
    CHECK(answer("wWw", SYS_mremap, 0, 1, page_size, MREMAP_MAYMOVE | MREMAP_FIXED, 1) == -EPERM);
    CHECK(answer("wWw", SYS_mremap, 0, 1, page_size, MREMAP_FIXED, 1) == 0);  // EINVAL anyway
}

TEST_CASE("what is sealed may be emptied if the program could overwrite it, or others have it") {
    CHECK(answer("W", SYS_madvise, 0, 1, MADV_DONTNEED) == 0);
    CHECK(answer("R", SYS_madvise, 0, 1, MADV_DONTNEED) == -EPERM);
    CHECK(answer("S", SYS_madvise, 0, 1, MADV_DONTNEED) == 0);
    CHECK(answer("R", SYS_madvise, 0, 1, MADV_WILLNEED) == 0);
    CHECK(answer("r", SYS_madvise, 0, 1, MADV_DONTNEED) == 0);
}

TEST_CASE("a heap does not shrink below what is sealed of it") {
    AddressSpace space = space_of("wW");
    const uint64_t end = base + 2 * page_size;
    const uint64_t shrink[] = {base + page_size, 0, 0, 0, 0, 0};
    const uint64_t grow[] = {end + page_size, 0, 0, 0, 0, 0};
    CHECK(answer_about_sealed(space, SYS_brk, shrink, end).value_or(0) ==
          static_cast<int64_t>(end));
    CHECK_FALSE(answer_about_sealed(space, SYS_brk, grow, end));
    CHECK_FALSE(answer_about_sealed(space, SYS_brk, shrink, 0));
}

TEST_CASE("only whole mapped ranges are sealed") {
    AddressSpace space = space_of("ww-w");
    auto seal = [&](uint64_t begin, uint64_t size, uint64_t flags) {
        const uint64_t args[] = {begin, size, flags};
        return sealing_of(space, args).result;
    };
    if (seal(base, page_size, 0) == -ENOSYS) return;
    CHECK(seal(base, 2 * page_size - 5, 0) == 0);
    CHECK(seal(base, 0, 0) == 0);
    CHECK(seal(base, page_size, 1) == -EINVAL);
    CHECK(seal(base + 1, page_size, 0) == -EINVAL);
    CHECK(seal(base, ~0ULL - 5, 0) == -EINVAL);
    CHECK(seal(base, 4 * page_size, 0) == -ENOMEM);
    mark_sealed(space, {{base}, {base + page_size}});
    CHECK(space.find({base})->sealed);
    CHECK_FALSE(space.find({base + page_size})->sealed);
}

TEST_CASE("shared memory is one object if its file is, whatever its number") {
    Fd first(memfd_create("first", MFD_CLOEXEC)), second(memfd_create("second", MFD_CLOEXEC));
    MapsEntry shown;
    shown.name = "/SYSV00000000 (deleted)";
    shown.device = 1;
    shown.inode = 7;
    const SharedIdentity a = identity_of(shown, first, 4026531839);
    const SharedIdentity b = identity_of(shown, second, 4026531839);
    CHECK(a.is(identity_of(shown, first, 5)));  // it has left the namespace, and keeps the memory
    CHECK_FALSE(a.is(b));
    const SharedIdentity unseen = identity_of(shown, Fd(), 4026531839);
    CHECK(unseen.is(identity_of(shown, Fd(), 4026531839)));
    CHECK_FALSE(unseen.is(identity_of(shown, Fd(), 5)));
    shown.name = "/memfd:other (deleted)";
    CHECK_FALSE(a.is(identity_of(shown, first, 4026531839)));
}

}  // namespace
}  // namespace gpr
