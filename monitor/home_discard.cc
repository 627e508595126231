// MADV_DONTNEED on private file memory. A copy of the file's content stands for it where the
// program may write (make_anonymous), so the content is put back from the file.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "monitor/home_session.h"
#include "monitor/mapping_news.h"

namespace gpr {

// For reading, and one for all mappings of the file; none if we may not open it again.
std::shared_ptr<Fd> HomeSession::file_of(pid_t pid, int fd) {
    Fd opened(open(fmt::format("/proc/{}/fd/{}", pid, fd).c_str(),
                   O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    struct stat st {};
    if (!opened || fstat(opened.get(), &st) != 0 || !S_ISREG(st.st_mode)) return nullptr;
    std::weak_ptr<Fd>& known = private_files_[{st.st_dev, st.st_ino}];
    if (auto file = known.lock()) return file;
    auto file = std::make_shared<Fd>(std::move(opened));
    known = file;
    return file;
}

void HomeSession::announce_discard(HomeProcess& process, Range range,
                                   const std::vector<Mapping>& pieces) {
    pager_.discard(pieces);
    tell_discarded(link_, process.pid, range);
}

Task<int64_t> HomeSession::discard_content(HomeProcess& process, HomeThread& thread, Range range) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    uint64_t covered = 0;
    std::vector<Mapping> pieces;
    bool cannot = false;  // what we have no file for keeps what it has
    fragment->space.for_each(range, [&](Mapping& m) {
        covered += m.range.size();
        if (m.shared) return;
        bool copy = m.backing == Backing::anonymous;
        cannot = cannot || (copy && m.file && !m.content && !m.trapped);
        pieces.push_back(m);
    });
    int64_t result = covered == range.size() ? 0 : -ENOMEM;
    if (cannot || pieces.empty()) co_return result;
    announce_discard(process, range, pieces);
    for (const Mapping& m : pieces) {
        if (m.backing != Backing::anonymous || m.trapped) continue;
        if (!m.content) {
            co_await thread.stub->call(SYS_madvise, m.range.begin.value, m.range.size(),
                                       MADV_DONTNEED);
            fragment->wake(m.range);
            continue;
        }
        std::vector<std::byte> page(page_size);
        for (uint64_t done = 0; done < m.range.size(); done += page_size) {
            std::fill(page.begin(), page.end(), std::byte{0});
            auto offset = static_cast<off_t>(m.content_offset + done);
            bool there = pread(m.content->get(), page.data(), page_size, offset) > 0;
            Address at = m.range.begin + done;
            fragment->write_enable({at, at + page_size});
            if (fragment->memory().write(at, page.data(), page_size) < page_size && there) {
                fragment->install(at, page, true);
            }
        }
    }
    co_return result;
}

Task<void> HomeSession::discard_for(HomeProcess& process, HomeThread& thread, Frame frame) {
    auto args = frame->session().getCall().getArgs();
    auto guard = co_await metadata_.lock();
    Range range{{args[0]}, Address{args[0] + args[1]}.page_end()};
    int64_t result = co_await discard_content(process, thread, range);
    guard.release();
    reply(thread, result);
}

}  // namespace gpr
