// What a node does about a change that its kernel has made: the list of mappings, and who is told.
#include "monitor/node/address_changes.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace gpr {
namespace {

constexpr uint64_t base = 0x100000, elsewhere = 0x900000;
constexpr NodeId self = 1;

Range at(uint64_t address, uint64_t pages) { return {{address}, {address + pages * page_size}}; }

class Side final : public AddressSide {
public:
    void tell(pid_t, const AddressChange& change, NodeId made_at) override {
        CHECK(made_at == self);
        told.push_back(change);
    }
    ObjectId new_object() override { return next++; }
    void show_same_file(pid_t, ObjectId other, Mapping&) override { same_as = other; }
    bool admit(pid_t, Mapped&, NodeId) override { return true; }
    Task<void> save_shared(std::shared_ptr<Fragment>, Range) override { co_return; }
    Task<void> show_shared(std::shared_ptr<Fragment>, Mapping) override { co_return; }
    Task<bool> show_content(std::shared_ptr<Fragment>, Mapping) override { co_return false; }
    Task<void> let_differ(std::shared_ptr<Fragment>, Range) override { co_return; }
    Task<void> let_write(std::shared_ptr<Fragment> fragment, Range range) override {
        prot_then = fragment->space.find(range.begin)->prot;
        co_return;
    }
    void forget_shared(const std::vector<Mapping>& gone) override { forgotten += gone.size(); }
    void cannot_follow(pid_t, NodeId, const std::string&) override { CHECK(false); }

    std::vector<AddressChange> told;
    ObjectId next = 100, same_as = 0;
    int prot_then = 0;
    size_t forgotten = 0;
};

struct Node {
    std::unique_ptr<Loop> loop = std::move(*Loop::create());
    Pager pager{self, *loop, nullptr, [](NodeId, bool, const Message&) {}};
    Side side;
    AddressChanges changes{pager, self, side};
    std::shared_ptr<Fragment> fragment = std::make_shared<Fragment>(
        *loop, getpid(), getpid(), *RemoteMemory::open(getpid()), std::move(*Mailbox::create()));

    Node() {
        Mapping m;
        m.range = at(base, 4);
        m.prot = PROT_READ;
        m.object = 7;
        m.birth = self;
        pager.objects.add(m.object, self);
        fragment->space.map(m);
    }
    // Begins it, and lets all go on that can.
    template <class Work>
    bool is_done_by(Work work) {
        auto done = std::make_shared<bool>(false);
        spawn([](Task<void> its, std::shared_ptr<bool> over) -> Task<void> {
            co_await its;
            *over = true;
        }(work(), done));
        settle();
        finished = done;
        return *done;
    }
    void settle() {
        loop->after(std::chrono::milliseconds(1), [this] { loop->stop(); });
        loop->run();
    }

    std::shared_ptr<bool> finished;
};

TEST_CASE("what is unmapped is gone, and the others are told of all of it") {
    Node node;
    CHECK(node.is_done_by([&] { return node.changes.unmap(node.fragment, at(base, 8), self); }));
    CHECK(node.fragment->space.all().empty());
    REQUIRE(node.side.told.size() == 1);
    CHECK(std::get<Unmapped>(node.side.told[0]).range == at(base, 8));
    CHECK(node.side.forgotten == 1);
    CHECK_FALSE(node.pager.objects.is_born_here(7));
}

TEST_CASE("code that is being hidden is not unmapped before that is over") {
    Node node;
    node.fragment->space.for_each(at(base, 4), [](Mapping& m) { m.trapped = true; });
    std::optional<AsyncMutex::Guard> hiding;
    spawn([](Node& its, std::optional<AsyncMutex::Guard>& held) -> Task<void> {
        held.emplace(co_await its.pager.trapped.lock());
    }(node, hiding));
    node.settle();
    REQUIRE(hiding);
    CHECK_FALSE(
        node.is_done_by([&] { return node.changes.unmap(node.fragment, at(base, 1), self); }));
    hiding.reset();
    node.settle();
    CHECK(*node.finished);
}

TEST_CASE("what may be written from now on has its protection when it becomes a copy") {
    Node node;
    constexpr int both = PROT_READ | PROT_WRITE;
    CHECK(node.is_done_by(
        [&] { return node.changes.protect(node.fragment, at(base, 2), both, self); }));
    CHECK(node.side.prot_then == both);
    CHECK(node.fragment->space.find({base + 2 * page_size})->prot == PROT_READ);
    REQUIRE(node.side.told.size() == 1);
    CHECK(std::get<Protected>(node.side.told[0]).range == at(base, 2));
}

TEST_CASE("behind a move the old place shows a new life, of which all know the number") {
    Node node;
    const Moved move{at(base, 4), at(elsewhere, 4), 50, self};
    CHECK(node.is_done_by([&] { return node.changes.note_move(node.fragment, move, Range{}); }));
    AddressSpace& space = node.fragment->space;
    CHECK(space.find({elsewhere})->object == 7);
    CHECK(space.find({base})->object == 50);
    CHECK(node.pager.objects.is_born_here(50));
    CHECK(node.side.same_as == 7);
    REQUIRE(node.side.told.size() == 1);
    CHECK(std::get<Moved>(node.side.told[0]).kept == 50);
}

TEST_CASE("what grows apart is a mapping of its own, and as locked as what it continues") {
    Node node;
    node.fragment->space.for_each(at(base, 4), [](Mapping& m) { m.locked = true; });
    const Moved move{at(base, 4), at(elsewhere, 4), 0, self};
    const Range apart = at(elsewhere + 4 * page_size, 2);
    CHECK(node.is_done_by([&] { return node.changes.note_move(node.fragment, move, apart); }));
    const Mapping* grown = node.fragment->space.find(apart.begin);
    REQUIRE(grown);
    CHECK(grown->range == apart);
    CHECK(grown->object == 100);
    REQUIRE(node.side.told.size() == 3);
    CHECK(std::get<Mapped>(node.side.told[1]).mapping.range == apart);
    CHECK(std::get<MemoryLock>(node.side.told[2]).range == apart);
}

}  // namespace
}  // namespace gpr
