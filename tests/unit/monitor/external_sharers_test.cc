#include "monitor/home/external_sharers.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/tracee/remote_memory_raw.h"

namespace gpr {

namespace {

constexpr size_t size = 4096;

// Does something and then waits to be killed.
class Other {
public:
    template <class Do>
    explicit Other(Do work) {
        int ready[2];
        REQUIRE(pipe(ready) == 0);
        pid_ = fork();
        if (pid_ == 0) {
            work();
            char done = 0;
            if (write(ready[1], &done, 1) == 1) pause();
            _exit(0);
        }
        close(ready[1]);
        char done = 0;
        REQUIRE(read(ready[0], &done, 1) == 1);
        close(ready[0]);
    }
    ~Other() {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
    Other(const Other&) = delete;
    Other& operator=(const Other&) = delete;

private:
    pid_t pid_ = -1;
};

struct Memory {
    explicit Memory(int of) : fd(of) {
        REQUIRE(ftruncate(of, size) == 0);
        void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, of, 0);
        REQUIRE(at != MAP_FAILED);
        struct stat st {};
        REQUIRE(fstat(of, &st) == 0);
        auto maps = read_maps(getpid());
        REQUIRE(maps);
        for (const MapsEntry& e : *maps) {
            if (e.range.begin.value != reinterpret_cast<uint64_t>(at)) continue;
            names = {e.device, e.inode, st.st_dev, st.st_ino};
            name = e.name;
        }
        // Only we may have it in sight, by what each case does with it.
        munmap(at, size);
    }
    Fd fd;
    FileNames names;
    std::string name;
};

struct Fixture {
    Fixture() : loop(*Loop::create()), external_sharers(*loop, [] {}) {}
    OutsideUse use_of(const Memory& memory) {
        std::optional<std::vector<OutsideUse>> found;
        spawn(look(memory, found));
        loop->run();
        return found->at(0);
    }
    Task<void> look(const Memory& memory, std::optional<std::vector<OutsideUse>>& found) {
        std::vector<FileNames> files(1, memory.names);
        auto whose = [](pid_t pid) {
            using enum ExternalSharers::Whose;
            return pid == getpid() ? sessions : unknown;
        };
        found = co_await external_sharers.look(std::move(files), whose);
        loop->post([this] { loop->stop(); });
    }
    std::unique_ptr<Loop> loop;
    ExternalSharers external_sharers;
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "another process has the file open, mapped, or not any more") {
    Memory memory(memfd_create("ours", MFD_CLOEXEC));
    CHECK_FALSE(use_of(memory).any);
    {
        Other reads([&] {
            auto link = "/proc/self/fd/" + std::to_string(memory.fd.get());
            if (open(link.c_str(), O_RDONLY) < 0) _exit(1);
            close(memory.fd.get());
        });
        OutsideUse use = use_of(memory);
        CHECK(use.any);
        CHECK_FALSE(use.writes);
    }
    {
        Other has([] {});
        CHECK(use_of(memory).writes);
    }
    {
        Other maps([&] {
            int fd = memory.fd.get();
            void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
            if (at == MAP_FAILED) _exit(1);
            close(fd);
        });
        CHECK(use_of(memory).writes);
    }
    CHECK_FALSE(use_of(memory).any);
}

TEST_CASE_FIXTURE(Fixture, "opening and writing are news, once") {
    Memory memory(memfd_create("ours", MFD_CLOEXEC));
    auto watched = external_sharers.watch(memory.fd, memory.name, memory.names.mapped_inode);
    REQUIRE(watched.id());
    external_sharers.take_news();
    CHECK(external_sharers.take_news().opened.empty());
    auto link = "/proc/self/fd/" + std::to_string(memory.fd.get());
    Fd fd(open(link.c_str(), O_RDWR));
    auto news = external_sharers.take_news();
    CHECK(news.opened.contains(*watched.id()));
    CHECK(news.written.empty());
    CHECK(ftruncate(fd.get(), 2 * size) == 0);
    news = external_sharers.take_news();
    CHECK(news.written.contains(*watched.id()));
    CHECK(news.opened.empty());
    external_sharers.forget(watched);
    fd = Fd(open(link.c_str(), O_RDONLY));
    CHECK(external_sharers.take_news().opened.empty());
}

TEST_CASE_FIXTURE(Fixture, "attaching a segment is news") {
    int segment = shmget(IPC_PRIVATE, size, IPC_CREAT | 0600);
    REQUIRE(segment >= 0);
    auto watched =
        external_sharers.watch(Fd(), "/SYSV00000000 (deleted)", static_cast<uint64_t>(segment));
    CHECK(watched.has_name(Fd()));
    external_sharers.take_news();
    void* at = shmat(segment, nullptr, 0);
    CHECK(external_sharers.take_news().opened.contains(*watched.id()));
    CHECK(external_sharers.take_news().opened.empty());
    shmdt(at);
    shmctl(segment, IPC_RMID, nullptr);
    external_sharers.forget(watched);
}

TEST_CASE_FIXTURE(Fixture, "a look that can wait does after another one") {
    Memory memory(memfd_create("ours", MFD_CLOEXEC));
    CHECK(external_sharers.may_look());
    use_of(memory);
    CHECK_FALSE(external_sharers.may_look());
}

TEST_CASE_FIXTURE(Fixture,
                  "of two looks at once the one that began first tells nothing afterwards") {
    Memory memory(memfd_create("ours", MFD_CLOEXEC));
    std::optional<std::vector<OutsideUse>> first, second;
    bool asked = false;
    int done = 0;
    // The first has a process to look at that the second calls ours.
    auto tells = [&](bool all, std::optional<std::vector<OutsideUse>>& found) -> Task<void> {
        std::vector<FileNames> files(1, memory.names);
        auto whose = [&, all](pid_t) {
            using enum ExternalSharers::Whose;
            if (all && !std::exchange(asked, true)) usleep(1000);  // so that others go on
            return all ? unknown : sessions;
        };
        found = co_await external_sharers.look(std::move(files), whose);
        if (++done == 2) loop->post([this] { loop->stop(); });
    };
    CHECK(external_sharers.may_look());
    spawn(tells(true, first));
    CHECK_FALSE(external_sharers.may_look());  // it goes on
    spawn(tells(false, second));
    loop->run();
    CHECK(second.has_value());
    CHECK_FALSE(first.has_value());
}

TEST_CASE_FIXTURE(Fixture, "what is opened while the program opens files is most likely its own") {
    Memory memory(memfd_create("ours", MFD_CLOEXEC));
    auto watched = external_sharers.watch(memory.fd, memory.name, memory.names.mapped_inode);
    auto link = "/proc/self/fd/" + std::to_string(memory.fd.get());
    std::optional<ExternalSharers::Opening> opening;
    opening.emplace(external_sharers);
    Fd fd(open(link.c_str(), O_RDONLY));
    CHECK(external_sharers.take_news().by_us);
    fd = Fd(open(link.c_str(), O_RDONLY));
    opening.reset();
    auto news = external_sharers.take_news();
    CHECK(news.by_us);
    CHECK(news.opened.contains(*watched.id()));
    fd = Fd(open(link.c_str(), O_RDONLY));
    news = external_sharers.take_news();
    CHECK_FALSE(news.by_us);
    CHECK(news.opened.contains(*watched.id()));
}

TEST_CASE_FIXTURE(Fixture, "nobody can open a file without a name") {
    Memory memfd(memfd_create("ours", MFD_CLOEXEC));
    auto watched = external_sharers.watch(memfd.fd, memfd.name, memfd.names.mapped_inode);
    CHECK_FALSE(watched.has_name(memfd.fd));
    char path[] = "/tmp/gpr-sharers-XXXXXX";
    Memory file(mkstemp(path));
    auto named = external_sharers.watch(file.fd, file.name, file.names.mapped_inode);
    CHECK(named.has_name(file.fd));
    unlink(path);
    CHECK_FALSE(named.has_name(file.fd));
}

}  // namespace gpr
