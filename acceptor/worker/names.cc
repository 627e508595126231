#include "acceptor/worker/names.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "acceptor/worker/epolls.h"
#include "acceptor/worker/files.h"
#include "acceptor/worker/forwarding.h"
#include "acceptor/worker/signals.h"
#include "acceptor/worker/worker.h"
#include "monitor/tracee/ptrace.h"
#include "syscall/table.h"

namespace gpr::worker {

namespace {

// The last numbers below the acceptor's own: one for an unusable file, one for temporary use.
constexpr unsigned set_aside = 2;

bool renames(uint32_t number) { return number == SYS_dup2 || number == SYS_dup3; }

bool duplicates(const Notification& n) {
    auto command = static_cast<int>(n.args[1]);
    return n.number == SYS_dup ||
           (n.number == SYS_fcntl && (command == F_DUPFD || command == F_DUPFD_CLOEXEC));
}

// Only home knows close-on-exec flags of names, because home's kernel does the exec.
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

// Whether it is a descriptor here that is no name.
bool is_own(const RemoteProcess& process, uint64_t fd) {
    return has_fd_here(process, fd) && static_cast<uint32_t>(fd) >= process.fd_base;
}

}  // namespace

uint64_t Names::add_file(Fd file) {
    files_[++last_file_] = std::move(file);
    return last_file_;
}

void Names::note_name(RemoteProcess& process, int number, uint64_t file) {
    process.names[number] = {file, false};
}

void Names::forget_names(RemoteProcess& process, uint64_t first, uint64_t last) {
    if (first > INT32_MAX) return;
    auto it = process.names.lower_bound(static_cast<int>(first));
    while (it != process.names.end() && static_cast<uint64_t>(it->first) <= last) {
        process.former_names.insert(it->first);
        it = process.names.erase(it);
    }
}

void Names::note_names(RemoteProcess& process, capnp::List<wire::FdName>::Reader names) {
    for (auto name : names) {
        bool sound = name.getNumber() >= 0 &&
                     static_cast<unsigned>(name.getNumber()) + set_aside < process.fd_base &&
                     files_.contains(name.getFile());
        if (sound) note_name(process, name.getNumber(), name.getFile());
    }
}

// Waits for the same lock as answers do, so that both are applied in the order in which home sent
// them.
Task<void> Names::on_fd_names(Frame frame) {
    { auto guard = co_await worker_.metadata.lock(); }
    auto news = frame->session().getFdNames();
    if (RemoteProcess* process = worker_.find_process(news.getPid())) {
        note_names(*process, news.getNames());
    }
}

void Names::on_files_gone(wire::FilesGone::Reader gone) {
    for (uint64_t file : gone.getFiles()) files_.erase(file);
}

// Makes the process's descriptor table match what we know of its names.
Task<void> Names::bring_names(RemoteProcess& process) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    if (!process.naming) process.naming = std::make_unique<AsyncMutex>(worker_.loop);
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
        auto file = files_.find(it->second.file);
        if (file == files_.end()) continue;
        int64_t put = co_await executor.put_fd(file->second.get(), it->first, true);
        if (put == thread_gone) co_return;
    }
}

// Home makes the call on its own descriptors; `note` records the effect when the answer arrives.
Task<void> Names::change_names(RemoteProcess& process, RemoteThread& thread, Notification n,
                               std::function<void(int64_t)> note, uint64_t file) {
    if (worker_.signals.has_signal_to_handle(thread)) {
        if (file != 0) files_.erase(file);
        process.notifier->reply_raw(n.id, -trace::restart_nointr);
        co_return;
    }
    thread.on_answer = std::move(note);
    int64_t result =
        co_await worker_.forwarding.ask_home(process, thread, n, true, nullptr, nullptr, 0, file);
    if (result == thread_gone && thread.stub->dead()) co_return;
    thread.on_answer = nullptr;
    co_await bring_names(process);
    worker_.forwarding.give_answer(thread, n.id, result);
}

// dup2 and dup3 of a descriptor here to a number of home.
Task<void> Names::name_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    auto number = static_cast<uint32_t>(n.args[1]);
    bool flawed = n.number == SYS_dup3 && (static_cast<uint32_t>(n.args[2]) & ~O_CLOEXEC);
    Fd copy(static_cast<int>(
        syscall(SYS_pidfd_getfd, process.pidfd.get(), static_cast<int>(n.args[0]), 0)));
    bool possible = copy && number <= INT32_MAX && number + set_aside < process.fd_base;
    if (flawed || !possible) {
        process.notifier->reply_error(n.id, flawed ? EINVAL : EBADF);
        co_return;
    }
    co_await worker_.epolls.forget_epolls(process, number, number);
    uint64_t file = add_file(std::move(copy));
    auto note = [this, &process, number, file](int64_t result) {
        if (result >= 0) {
            note_name(process, static_cast<int>(number), file);
        } else {
            files_.erase(file);
        }
    };
    worker_.counts.fd_owner++;
    co_await change_names(process, thread, n, std::move(note), file);
}

// dup and the like, of a name.
Task<void> Names::copy_name_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    auto source = process.names.find(static_cast<int>(n.args[0]));
    if (source == process.names.end()) {  // closed meanwhile
        process.notifier->reply_error(n.id, EBADF);
        co_return;
    }
    uint64_t file = source->second.file;
    if (renames(n.number)) co_await worker_.epolls.forget_epolls(process, n.args[1], n.args[1]);
    auto note = [this, &process, n, file](int64_t result) {
        bool same = renames(n.number) && n.args[0] == n.args[1];
        if (result >= 0 && !same) note_name(process, static_cast<int>(result), file);
    };
    co_await change_names(process, thread, n, std::move(note));
}

// Whether the path is absolute, so that the directory descriptor is ignored.
Task<bool> Names::is_beside_its_fd(RemoteProcess& process, Notification n, int path_argument) {
    char first = 0;
    auto byte = std::as_writable_bytes(std::span(&first, 1));
    bool readable = co_await worker_.pager.memory.read(
        *process.fragment, {n.args[static_cast<size_t>(path_argument)]}, byte);
    co_return readable&& first == '/';
}

Task<void> Names::close_range_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    thread.on_answer = [this, &process, n](int64_t result) {
        bool closes = result == 0 && !(n.args[2] & CLOSE_RANGE_CLOEXEC);
        if (closes) {
            forget_names(process, static_cast<uint32_t>(n.args[0]),
                         static_cast<uint32_t>(n.args[1]));
        }
    };
    co_await worker_.files.close_range_call(process, thread, n);
    co_await bring_names(process);
}

// For a call that makes a name or removes one. False if it does neither.
Task<bool> Names::changing_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    bool first_named = process.names.contains(static_cast<int>(n.args[0]));
    if (n.number == SYS_close) {
        auto note = [this, &process, n](int64_t result) {
            auto number = static_cast<uint32_t>(n.args[0]);
            if (result != -EBADF) forget_names(process, number, number);
        };
        co_await change_names(process, thread, n, std::move(note));
        co_return true;
    }
    if (duplicates(n) || (renames(n.number) && first_named && !is_own(process, n.args[1]))) {
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
    co_return false;
}

// For a call that concerns a name. False if it is handled like any other call.
Task<bool> Names::named_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    if (renames(n.number) && is_own(process, n.args[0]) && !is_own(process, n.args[1])) {
        co_await name_call(process, thread, n);
        co_return true;
    }
    if (process.names.empty()) co_return false;
    if (n.number == SYS_close_range) {
        co_await close_range_call(process, thread, n);
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
    bool changes = co_await changing_call(process, thread, n);
    if (changes) co_return true;
    if (is_about_exec(n)) {
        co_await worker_.forwarding.forward(process, thread, n);
        co_return true;
    }
    if (here != fds && moves_data(n.number)) {
        // The error of file systems that cannot copy to each other: programs then copy the data
        // themselves.
        process.notifier->reply_error(n.id, n.number == SYS_copy_file_range ? EXDEV : EINVAL);
        co_return true;
    }
    if (row->place != Place::fd_owner || here != fds) co_return false;
    if (row->path_argument() >= 0) {
        bool beside = co_await is_beside_its_fd(process, n, row->path_argument());
        if (beside) co_return false;
    }
    // These handlers check descriptors themselves.
    const AtAcceptor handler = row->handlers.there;
    if (handler == AtAcceptor::send_message || handler == AtAcceptor::pin) co_return false;
    worker_.counts.fd_owner++;
    process.notifier->let_it_run(n.id);
    co_return true;
}

}  // namespace gpr::worker
