// A change of an address space is the same on the other side of a link.
#include "monitor/node/address_change.h"

#include <doctest/doctest.h>
#include <sys/mman.h>

namespace gpr {
namespace {

constexpr pid_t pid = 77;
const Range here{{0x10000}, {0x14000}}, there{{0x900000}, {0x902000}};

// Reads what is sent to it.
class Mirror final : public Link {
public:
    void send(FrameBuilder& frame, Priority priority) override {
        auto change = frame.message().asReader().getSession().getMapping();
        CHECK(priority == Priority::urgent);
        CHECK(change.getPid() == pid);
        came = change_from_wire(change);
    }
    void hold() override {}
    void release() override {}
    [[nodiscard]] uint64_t queued_bytes() const override { return 0; }
    void close(std::string) override {}
    [[nodiscard]] const std::string& peer_name() const override { return name_; }

    std::optional<AddressChange> came;

private:
    std::string name_ = "mirror";
};

template <class Change>
Change sent(const Change& change) {
    Mirror link;
    tell_change(link, 1, pid, change);
    REQUIRE(link.came);
    REQUIRE(std::holds_alternative<Change>(*link.came));
    return std::get<Change>(*link.came);
}

TEST_CASE("ranges arrive as they were") {
    CHECK(sent(Unmapped{here}).range == here);
    CHECK(sent(Discarded{here}).range == here);
    CHECK(sent(Sealed{here}).range == here);
    CHECK(sent(Following{here}).range == here);
    CHECK(sent(Filled{here}).range == here);
    CHECK(sent(Protected{here, PROT_READ}).prot == PROT_READ);
    CHECK(sent(Guarded{here, true}).install);
    CHECK_FALSE(sent(Guarded{here, false}).install);
    CHECK(sent(ProgramFills{here, true}).on);
    CHECK_FALSE(sent(ProgramFills{there, false}).on);
}

TEST_CASE("a move says what stays behind") {
    Moved moved = sent(Moved{here, there, 9, 2});
    CHECK(moved.from == here);
    CHECK(moved.to == there);
    CHECK(moved.kept == 9);
    CHECK(moved.kept_birth == 2);
}

TEST_CASE("a break comes with the object of its new pages") {
    BreakMoved moved = sent(BreakMoved{0x1234567, 8});
    CHECK(moved.end == 0x1234567);
    CHECK(moved.object == 8);
}

TEST_CASE("a lock may be about mappings to come") {
    MemoryLock lock = sent(MemoryLock{here, true, 0, true, LockOfNew::on_fault});
    CHECK(lock.range == here);
    CHECK(lock.locked);
    CHECK(lock.on_fault);
    CHECK(lock.future == LockOfNew::on_fault);
    CHECK_FALSE(sent(MemoryLock{here, false, 0, false, std::nullopt}).future);
}

TEST_CASE("a mapping comes with what it shows") {
    Mapped made;
    made.mapping.range = here;
    made.mapping.prot = PROT_READ | PROT_EXEC;
    made.mapping.shared = true;
    made.mapping.object = 12;
    made.mapping.object_page = 3;
    made.object_pages = 40;
    made.path = "/usr/lib/libz.so.1";
    Mapped came = sent(made);
    CHECK(came.mapping.range == here);
    CHECK(came.mapping.prot == made.mapping.prot);
    CHECK(came.mapping.shared);
    CHECK(came.mapping.object == 12);
    CHECK(came.mapping.object_page == 3);
    CHECK(came.object_pages == 40);
    CHECK(came.path == made.path);
}

TEST_CASE("marks and shared memory are no changes of one address space") {
    capnp::MallocMessageBuilder message;
    auto change = message.initRoot<wire::MappingChange>();
    change.setMark(4);
    CHECK_FALSE(change_from_wire(change.asReader()));
    change.setForget(4);
    CHECK_FALSE(change_from_wire(change.asReader()));
}

}  // namespace
}  // namespace gpr
