// Numbers of home that are names of files here (monitor/home/fd_names.h). Home says which they are;
// the files then have these numbers in the process's table here too, where others have nothing that
// can be used, so that the kernel makes calls about them as the program wrote them.

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "acceptor/worker/worker.h"
#include "base/log.h"
#include "syscall/table.h"

namespace gpr {

namespace {

// Below the first number of its own: what has nothing, and what is used in passing.
constexpr unsigned set_aside = 2;

bool renames(uint32_t number) { return number == SYS_dup2 || number == SYS_dup3; }

bool duplicates(const Notification& n) {
    auto command = static_cast<int>(n.args[1]);
    return n.number == SYS_dup ||
           (n.number == SYS_fcntl && (command == F_DUPFD || command == F_DUPFD_CLOEXEC));
}

// Whether it closes on exec is known at home, whose kernel does it.
bool is_about_exec(const Notification& n) {
    if (n.number == SYS_ioctl) {
        auto request = static_cast<uint32_t>(n.args[1]);
        return request == FIOCLEX || request == FIONCLEX;
    }
    auto command = static_cast<int>(n.args[1]);
    return n.number == SYS_fcntl && (command == F_GETFD || command == F_SETFD);
}

bool moves_data(uint32_t number) {
    return number == SYS_sendfile || number == SYS_splice || number == SYS_tee ||
           number == SYS_copy_file_range;
}

}  // namespace

void Worker::note_name(RemoteProcess& process, int number, uint64_t file) {
    process.names[number] = {file, false};
}

void Worker::forget_names(RemoteProcess& process, uint64_t first, uint64_t last) {
    if (first > INT32_MAX) return;
    auto it = process.names.lower_bound(static_cast<int>(first));
    while (it != process.names.end() && static_cast<uint64_t>(it->first) <= last) {
        process.former_names.insert(it->first);
        it = process.names.erase(it);
    }
}

void Worker::note_names(RemoteProcess& process, capnp::List<wire::FdName>::Reader names) {
    for (auto name : names) {
        bool sound = name.getNumber() >= 0 &&
                     static_cast<unsigned>(name.getNumber()) + set_aside < process.fd_base &&
                     named_files_.contains(name.getFile());
        if (sound) note_name(process, name.getNumber(), name.getFile());
    }
}

// In the order in which home said so: answers, too, wait for this lock.
Task<void> Worker::on_fd_names(Frame frame) {
    { auto guard = co_await metadata_.lock(); }
    auto news = frame->session().getFdNames();
    if (RemoteProcess* process = find_process(news.getPid())) {
        note_names(*process, news.getNames());
    }
}

void Worker::on_files_gone(wire::FilesGone::Reader gone) {
    for (uint64_t file : gone.getFiles()) named_files_.erase(file);
}

// The process's table becomes what we know.
Task<void> Worker::bring_names(RemoteProcess& process) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    if (!process.naming) process.naming = std::make_unique<AsyncMutex>(loop_);
    auto guard = co_await process.naming->lock();
    StubThread& executor = fragment->executor();
    while (!process.former_names.empty()) {
        int number = *process.former_names.begin();
        process.former_names.erase(number);
        if (process.names.contains(number)) continue;
        co_await executor.call(SYS_dup3, process.fd_base - set_aside, static_cast<uint64_t>(number),
                               O_CLOEXEC);
    }
    for (;;) {
        auto it = std::find_if(process.names.begin(), process.names.end(),
                               [](const auto& name) { return !name.second.here; });
        if (it == process.names.end()) co_return;
        it->second.here = true;
        auto file = named_files_.find(it->second.file);
        if (file == named_files_.end()) continue;
        int64_t put = co_await executor.put_fd(file->second.get(), it->first, true);
        if (put == thread_gone) co_return;
    }
}

// Made at home, on the names there; what comes of it is noted when the answer comes.
Task<void> Worker::change_names(RemoteProcess& process, RemoteThread& thread, Notification n,
                                std::function<void(int64_t)> note, uint64_t file) {
    if (has_signal_to_handle(thread)) {
        if (file != 0) named_files_.erase(file);
        process.notifier->reply_raw(n.id, -trace::restart_nointr);
        co_return;
    }
    thread.on_answer = std::move(note);
    int64_t result = co_await ask_home(process, thread, n, true, nullptr, nullptr, 0, file);
    if (result == thread_gone && thread.stub->dead()) co_return;
    thread.on_answer = nullptr;
    co_await bring_names(process);
    give_answer(thread, n.id, result);
}

// dup2 and dup3, of a descriptor here to a number of home.
Task<void> Worker::name_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    auto number = static_cast<uint32_t>(n.args[1]);
    bool flawed = n.number == SYS_dup3 && (static_cast<uint32_t>(n.args[2]) & ~O_CLOEXEC);
    Fd copy(static_cast<int>(
        syscall(SYS_pidfd_getfd, process.pidfd.get(), static_cast<int>(n.args[0]), 0)));
    bool possible = copy && number <= INT32_MAX && number + set_aside < process.fd_base;
    if (flawed || !possible) {
        process.notifier->reply_error(n.id, flawed ? EINVAL : EBADF);
        co_return;
    }
    co_await forget_epolls(process, number, number);
    uint64_t file = ++last_file_;
    named_files_[file] = std::move(copy);
    auto note = [this, &process, number, file](int64_t result) {
        if (result >= 0) {
            note_name(process, static_cast<int>(number), file);
        } else {
            named_files_.erase(file);
        }
    };
    calls_fd_owner_++;
    co_await change_names(process, thread, n, std::move(note), file);
}

// dup and its kin, of a name.
Task<void> Worker::copy_name_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    auto source = process.names.find(static_cast<int>(n.args[0]));
    if (source == process.names.end()) {  // closed meanwhile
        process.notifier->reply_error(n.id, EBADF);
        co_return;
    }
    uint64_t file = source->second.file;
    if (renames(n.number)) co_await forget_epolls(process, n.args[1], n.args[1]);
    auto note = [this, &process, n, file](int64_t result) {
        bool same = renames(n.number) && n.args[0] == n.args[1];
        if (result >= 0 && !same) note_name(process, static_cast<int>(result), file);
    };
    co_await change_names(process, thread, n, std::move(note));
}

// An absolute path is looked up in spite of the descriptor that comes with it.
Task<bool> Worker::is_beside_its_fd(RemoteProcess& process, Notification n, int path_argument) {
    char first = 0;
    auto byte = std::as_writable_bytes(std::span(&first, 1));
    bool readable =
        co_await pager_.read(*process.fragment, {n.args[static_cast<size_t>(path_argument)]}, byte);
    co_return readable&& first == '/';
}

// A call that concerns a name. False: as any other.
Task<bool> Worker::named_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    auto is_own = [&](uint64_t fd) {
        return has_fd_here(process, fd) && static_cast<uint32_t>(fd) >= process.fd_base;
    };
    if (renames(n.number) && is_own(n.args[0]) && !is_own(n.args[1])) {
        co_await name_call(process, thread, n);
        co_return true;
    }
    if (process.names.empty()) co_return false;
    if (n.number == SYS_close_range) {
        thread.on_answer = [this, &process, n](int64_t result) {
            bool closes = result == 0 && !(n.args[2] & CLOSE_RANGE_CLOEXEC);
            if (closes) {
                forget_names(process, static_cast<uint32_t>(n.args[0]),
                             static_cast<uint32_t>(n.args[1]));
            }
        };
        co_await close_range_call(process, thread, n);
        co_await bring_names(process);
        co_return true;
    }
    const Row* row = find_row(n.number);
    if (!row || (n.number == SYS_mmap && (n.args[3] & MAP_ANONYMOUS))) co_return false;
    size_t fds = 0, here = 0, named = 0;
    for (size_t i = 0; i < row->arguments.size(); i++) {
        if (row->arguments[i].kind != Kind::fd) continue;
        fds++;
        here += has_fd_here(process, n.args[i]);
        named += process.names.contains(static_cast<int>(n.args[i]));
    }
    if (named == 0) co_return false;
    co_await bring_names(process);
    bool first_named = process.names.contains(static_cast<int>(n.args[0]));
    if (n.number == SYS_close) {
        auto note = [this, &process, n](int64_t result) {
            auto number = static_cast<uint32_t>(n.args[0]);
            if (result != -EBADF) forget_names(process, number, number);
        };
        co_await change_names(process, thread, n, std::move(note));
        co_return true;
    }
    if (duplicates(n) || (renames(n.number) && first_named && !is_own(n.args[1]))) {
        co_await copy_name_call(process, thread, n);
        co_return true;
    }
    if (renames(n.number) && !first_named) {
        auto note = [this, &process, n](int64_t result) {
            auto number = static_cast<uint32_t>(n.args[1]);
            if (result >= 0) forget_names(process, number, number);
        };
        co_await change_names(process, thread, n, std::move(note));
        co_return true;
    }
    if (is_about_exec(n)) {
        co_await forward(process, thread, n);
        co_return true;
    }
    if (here != fds && moves_data(n.number)) {
        // As between file systems that cannot: programs copy the data themselves then.
        process.notifier->reply_error(n.id, n.number == SYS_copy_file_range ? EXDEV : EINVAL);
        co_return true;
    }
    if (row->place != Place::fd_owner || here != fds) co_return false;
    if (row->path_argument() >= 0) {
        bool beside = co_await is_beside_its_fd(process, n, row->path_argument());
        if (beside) co_return false;
    }
    switch (n.number) {  // these know what to do with descriptors here
        case SYS_sendmsg:
        case SYS_sendmmsg:
        case SYS_setsockopt:
        case SYS_io_uring_register: co_return false;
        default: break;
    }
    calls_fd_owner_++;
    process.notifier->let_it_run(n.id);
    co_return true;
}

// A child of a thread at home.
void Worker::on_heir(wire::Heir::Reader heir) {
    std::vector<KeptFd> all;
    if (RemoteProcess* parent = find_process(heir.getParent())) {
        all = descriptors_of(*parent);
    } else if (auto kept = kept_.find(heir.getParent()); kept != kept_.end()) {
        for (const KeptFd& fd : kept->second.descriptors) {
            all.push_back(
                {fd.number, Fd(fcntl(fd.copy.get(), F_DUPFD_CLOEXEC, 0)), fd.closes_on_exec});
        }
    }
    keep_descriptors(heir.getChild(), std::move(all));
}

// Of a child that shares its parent's memory, and runs at home till it executes a program.
void Worker::on_kept_call(wire::KeptCall::Reader call) {
    auto [result, file] = make_kept_call(call);
    FrameBuilder frame;
    auto done = frame.session().initKeptDone();
    done.setCookie(call.getCookie());
    done.setResult(result);
    done.setFile(file);
    link_.send(frame, gpr::Priority::urgent);
}

// The kernel's result, and for dup2 the file that is to get the name.
std::pair<int64_t, uint64_t> Worker::make_kept_call(wire::KeptCall::Reader call) {
    auto args = call.getArgs();
    auto kept = kept_.find(call.getPid());
    if (kept == kept_.end() || args.size() != 6) return {-EBADF, 0};
    std::vector<KeptFd>& all = kept->second.descriptors;
    auto number = static_cast<uint32_t>(args[0]);
    if (call.getNumber() == SYS_close_range) {
        auto concerned = [&](const KeptFd& fd) {
            return static_cast<uint32_t>(fd.number) >= number &&
                   static_cast<uint32_t>(fd.number) <= static_cast<uint32_t>(args[1]);
        };
        if (args[2] & CLOSE_RANGE_CLOEXEC) {
            for (KeptFd& fd : all) fd.closes_on_exec |= concerned(fd);
        } else {
            std::erase_if(all, concerned);
        }
        return {0, 0};
    }
    auto it = std::find_if(all.begin(), all.end(), [&](const KeptFd& fd) {
        return static_cast<uint32_t>(fd.number) == number;
    });
    if (it == all.end()) return {-EBADF, 0};
    switch (call.getNumber()) {
        case SYS_close: all.erase(it); return {0, 0};
        case SYS_fcntl:
            if (args[1] == F_GETFD) return {it->closes_on_exec ? FD_CLOEXEC : 0, 0};
            if (args[1] == F_SETFD) {
                it->closes_on_exec = args[2] & FD_CLOEXEC;
                return {0, 0};
            }
            if (args[1] == F_GETFL) return {fcntl(it->copy.get(), F_GETFL), 0};
            return {-EBADF, 0};
        case SYS_dup3:
            if (static_cast<uint32_t>(args[2]) & ~O_CLOEXEC) return {-EINVAL, 0};
            [[fallthrough]];
        case SYS_dup2: {
            if (number == static_cast<uint32_t>(args[1])) {
                return {call.getNumber() == SYS_dup2 ? int64_t{number} : -EINVAL, 0};
            }
            Fd copy(fcntl(it->copy.get(), F_DUPFD_CLOEXEC, 0));
            if (!copy) return {-EMFILE, 0};
            named_files_[++last_file_] = std::move(copy);
            return {static_cast<int64_t>(args[1]), last_file_};
        }
        default: return {-EBADF, 0};
    }
}

}  // namespace gpr
