#include "acceptor/worker/delegations.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "acceptor/worker/delegated_file.h"
#include "acceptor/worker/forwarding.h"
#include "acceptor/worker/signals.h"
#include "acceptor/worker/worker.h"
#include "syscall/delegated_call.h"
#include "syscall/table.h"

namespace gpr::worker {

namespace {

constexpr size_t most_of_process = 64;  // files

// A buffer of our own, as if it were in the program's memory.
class Room : public MemoryReader {
public:
    static constexpr Address at{page_size};

    ReadOutcome read(Address, void*, size_t) override { return ReadOutcome::unmapped; }
};

// What the call would have written, in the form of gather().
void add_piece(std::vector<std::byte>& out, size_t index, std::span<const std::byte> bytes) {
    const uint32_t head[] = {static_cast<uint32_t>(index), static_cast<uint32_t>(bytes.size())};
    const auto head_bytes = std::as_bytes(std::span(head));
    out.insert(out.end(), head_bytes.begin(), head_bytes.end());
    out.insert(out.end(), bytes.begin(), bytes.end());
}

bool takes_data(const Piece& piece) {
    return piece.returned == Returned::result || piece.returned == Returned::share;
}

uint64_t room_in(const MarshalledCall& call) {
    uint64_t bytes = 0;
    for (const Piece& piece : call.pieces) bytes += takes_data(piece) ? piece.capacity : 0;
    return bytes;
}

std::vector<std::byte> spread(const MarshalledCall& call, std::span<const std::byte> data) {
    std::vector<std::byte> out;
    out.reserve(data.size() + 8 * call.pieces.size());
    for (size_t i = 0; i < call.pieces.size() && !data.empty(); i++) {
        if (!takes_data(call.pieces[i])) continue;
        const size_t share = std::min<size_t>(data.size(), call.pieces[i].capacity);
        add_piece(out, i, data.first(share));
        data = data.subspan(share);
    }
    return out;
}

// fstatat(2) of the descriptor itself: an empty path, and no flag that would ask for more.
bool is_of_descriptor(const MarshalledCall& call) {
    constexpr uint64_t harmless = AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
    const auto flags = static_cast<uint32_t>(call.args[3]);
    return (flags & AT_EMPTY_PATH) && !(flags & ~harmless) && call.in_bytes.size() == 1 &&
           call.in_bytes[0] == std::byte{0};
}

// By then a directory's time of last access may change as it is listed (relatime).
constexpr std::chrono::hours longest_of_directory{1};

// Errors are told by home, which knows what the file system says.
bool can_answer(OnDelegated use, const DelegatedFile& file) {
    const auto now = DelegatedFile::Clock::now();
    if (file.is_directory() && now - file.since() > longest_of_directory) return false;
    switch (use) {
        case OnDelegated::lists: return file.is_directory();
        case OnDelegated::reads:
        case OnDelegated::ioctl: return !file.is_directory();
        default: return true;
    }
}

}  // namespace

bool Delegations::wants(const RemoteProcess& process, const RemoteThread& thread,
                        const Notification& n) const {
    const Row* row = find_row(n.number);
    if (is_off_ || !row || !row->opens_by_name()) return false;
    // A filter of the program's may not like the reads that we make. A ring may read by itself.
    if (!thread.filters.empty() || process.closed.never) return false;
    if (process.debugged || process.goes_home || process.home_forks) return false;
    return std::ranges::all_of(process.threads,
                               [](const auto& other) { return other.second->here(); });
}

uint64_t Delegations::begin_to_open() { return *openings_.insert(++last_opening_).first; }

// What was recalled before the oldest call that is still under way began cannot arrive any more.
void Delegations::end_to_open(uint64_t opening) {
    openings_.erase(opening);
    const uint64_t oldest = openings_.empty() ? UINT64_MAX : *openings_.begin();
    std::erase_if(recalled_, [oldest](const auto& one) { return one.second < oldest; });
}

void Delegations::note(RemoteThread& thread, wire::CallReply::Reader reply,
                       std::vector<std::byte>& raw) {
    const auto delegation = reply.getDelegation();
    const auto status_bytes = delegation.getStatus();
    struct stat status {};
    if (status_bytes.size() != sizeof status || delegation.getContent() > raw.size()) {
        worker_.link.close("it delegates a file without its status or content");
        return;
    }
    std::memcpy(&status, status_bytes.begin(), sizeof status);
    const bool is_directory = S_ISDIR(status.st_mode);
    if (!(is_directory || S_ISREG(status.st_mode)) || status.st_size < 0) {
        worker_.link.close("it delegates what is neither a regular file nor a directory");
        return;
    }
    const auto begin = raw.end() - static_cast<ptrdiff_t>(delegation.getContent());
    std::vector<std::byte> content(begin, raw.end());
    raw.erase(begin, raw.end());
    const uint64_t id = delegation.getId();
    if (recalled_.erase(id) > 0) return;
    RemoteProcess& process = *thread.process;
    const int number = static_cast<int>(reply.getResult());
    if (process.delegated.size() >= most_of_process) {
        auto oldest = std::ranges::min_element(process.delegated, {},
                                               [](const auto& one) { return one.second->id(); });
        give_back(process, oldest->first);
    }
    worker_.counts.delegations++;
    process.delegated[number] = std::make_shared<DelegatedFile>(id, status, std::move(content));
}

Task<bool> Delegations::answer(RemoteProcess& process, RemoteThread& thread, Notification n) {
    if (process.delegated.empty()) co_return false;
    const OnDelegated use = on_delegated(n.number, n.args);
    if (handlers_of(n.number).there == AtAcceptor::close) co_return close(process, thread, n);
    if (use == OnDelegated::gives_back_all) give_back_all(process);
    if (use == OnDelegated::gives_back) {
        const Row* row = find_row(n.number);
        const uint32_t places = row ? row->fd_arguments() : 0;
        for (unsigned i = 0; i < 6; i++) {
            if (places >> i & 1) give_back(process, static_cast<int>(n.args[i]));
        }
    }
    const int number = static_cast<int>(n.args[0]);
    auto found = process.delegated.find(number);
    if (found == process.delegated.end()) co_return false;
    if (!can_answer(use, *found->second)) {
        give_back(process, number);
        co_return false;
    }
    switch (use) {
        case OnDelegated::lists: co_return co_await list(process, thread, n, number);
        case OnDelegated::reads: co_return co_await read(process, thread, n, number);
        case OnDelegated::status:
        case OnDelegated::status_at: co_return co_await give_status(process, thread, n, number);
        case OnDelegated::seeks: {
            auto result =
                found->second->seek(static_cast<int64_t>(n.args[1]), static_cast<int>(n.args[2]));
            if (!result) give_back(process, number);
            if (result) end_call(thread, n, *result);
            co_return result.has_value();
        }
        case OnDelegated::ioctl: end_call(thread, n, -ENOTTY); co_return true;
        default: co_return false;
    }
}

// Such a close cannot fail. Home has made it before it makes any later call of the process.
bool Delegations::close(RemoteProcess& process, RemoteThread& thread, const Notification& n) {
    const int number = static_cast<int>(n.args[0]);
    auto it = process.delegated.find(number);
    if (it == process.delegated.end()) return false;
    send_back(process.pid, number, it->second->id(), file_is_closed);
    process.delegated.erase(it);
    end_call(thread, n, 0);
    return true;
}

// With what the call names in the program's memory. nullopt: that cannot be had.
Task<std::optional<MarshalledCall>> Delegations::marshalled(RemoteProcess& process,
                                                            Notification n) {
    bool met_shared = false;
    auto call = co_await worker_.forwarding.marshal_here(process, n, true, &met_shared);
    auto* sent = call ? std::get_if<MarshalledCall>(&*call) : nullptr;
    if (!sent) co_return std::nullopt;
    co_return std::move(*sent);
}

// Everything is prepared first; then the file is looked at and its offset moved in one go, so that
// a recall comes either before the call or after it.
Task<bool> Delegations::read(RemoteProcess& process, RemoteThread& thread, Notification n,
                             int number) {
    constexpr int tries = 3;  // another thread may replace what was fetched
    const pid_t pid = process.pid, tid = thread.tid;
    const uint64_t id = process.delegated.at(number)->id();
    const bool at_offset = details_of(n.number).transfer.at_offset;
    std::shared_ptr<Fragment> fragment = process.fragment;
    const auto sent = co_await marshalled(process, n);
    if (worker_.find_thread(pid, tid) != &thread) co_return true;
    const uint64_t room = sent ? room_in(*sent) : 0;
    const bool is_negative = at_offset && static_cast<int64_t>(n.args[3]) < 0;
    for (int i = 0; i < tries && room != 0 && !is_negative; i++) {
        DelegatedFile* file = find(pid, number, id);
        if (!file) co_return false;
        const uint64_t at = at_offset ? n.args[3] : file->offset();
        auto data = file->content(at, room);
        if (data) {
            std::vector<std::byte> out = spread(*sent, *data);
            const uint64_t data_bytes = data->size();
            auto result = static_cast<int64_t>(data_bytes);
            if (!at_offset) file->advance(data_bytes);
            result = co_await worker_.forwarding.write_answer(*fragment, *sent, out, result);
            // As in the kernel, what could not be stored has not been read.
            file = find(pid, number, id);
            const bool moved = !at_offset && file && file->offset() == at + data_bytes;
            if (result < 0 && moved) file->seek(static_cast<int64_t>(at), SEEK_SET);
            if (worker_.find_thread(pid, tid) == &thread) end_call(thread, n, result);
            co_return true;
        }
        const bool came = co_await fetch(process, thread, number, at, room);
        if (worker_.find_thread(pid, tid) != &thread) co_return true;
        if (!came) break;
    }
    if (find(pid, number, id)) give_back(process, number);
    co_return false;
}

// Of entries that reach memory which cannot be written the ones before are told.
Task<bool> Delegations::list(RemoteProcess& process, RemoteThread& thread, Notification n,
                             int number) {
    const pid_t pid = process.pid, tid = thread.tid;
    const uint64_t id = process.delegated.at(number)->id();
    std::shared_ptr<Fragment> fragment = process.fragment;
    const auto sent = co_await marshalled(process, n);
    if (worker_.find_thread(pid, tid) != &thread) co_return true;
    uint64_t room = sent ? room_in(*sent) : 0;
    for (int64_t result = 0; room > 0;) {
        DelegatedFile* file = find(pid, number, id);
        if (!file) co_return false;
        const auto data = file->entries(room);
        if (!data) {
            if (result < 0) end_call(thread, n, result);
            if (result < 0) co_return true;
            break;
        }
        const uint64_t at = file->offset(), data_bytes = data->size();
        std::vector<std::byte> out = spread(*sent, *data);
        file->advance(data_bytes);
        const uint64_t end = file->offset();
        result = static_cast<int64_t>(data_bytes);
        result = co_await worker_.forwarding.write_answer(*fragment, *sent, out, result);
        file = find(pid, number, id);
        const bool moved = file && file->offset() == end;
        if (result < 0 && moved) file->seek(static_cast<int64_t>(at), SEEK_SET);
        if (worker_.find_thread(pid, tid) != &thread) co_return true;
        if (result == -EFAULT) {
            const Address to{n.args[1]}, last_page = (to + data_bytes - 1).page();
            room = last_page > to ? last_page - to : 0;
            if (room > 0) continue;
        }
        end_call(thread, n, result);
        co_return true;
    }
    if (find(pid, number, id)) give_back(process, number);
    co_return false;
}

Task<bool> Delegations::fetch(RemoteProcess& process, RemoteThread& thread, int number, uint64_t at,
                              uint64_t most) {
    const pid_t pid = process.pid, tid = thread.tid;
    const auto held = process.delegated.at(number);
    const DelegatedFile::Part part = held->missing(at, most);
    if (part.bytes == 0) co_return false;
    Room room;
    const SyscallArguments args{static_cast<uint32_t>(number), Room::at.value, part.bytes, part.at};
    auto call = marshal(SYS_pread64, args, room);
    auto* ready = std::get_if<MarshalledCall>(&call);
    if (!ready) co_return false;
    const MarshalledCall sent = *ready;
    std::vector<std::byte> answer;
    const int64_t result = co_await worker_.forwarding.ask_prepared(thread, sent, answer);
    if (result < 0 || worker_.find_thread(pid, tid) != &thread) co_return false;
    auto scattered = scatter(sent, answer);
    if (!scattered) co_return false;
    std::vector<std::byte> bytes;
    for (const MemoryWrite& w : scattered->writes) {
        bytes.insert(bytes.end(), w.bytes.begin(), w.bytes.end());
    }
    co_return held->keep(part, std::move(bytes));
}

Task<bool> Delegations::give_status(RemoteProcess& process, RemoteThread& thread, Notification n,
                                    int number) {
    const pid_t pid = process.pid, tid = thread.tid;
    const uint64_t id = process.delegated.at(number)->id();
    std::shared_ptr<Fragment> fragment = process.fragment;
    const auto sent = co_await marshalled(process, n);
    if (worker_.find_thread(pid, tid) != &thread) co_return true;
    DelegatedFile* file = find(pid, number, id);
    if (!sent || !file) co_return false;
    if (on_delegated(n.number, n.args) == OnDelegated::status_at && !is_of_descriptor(*sent)) {
        co_return false;
    }
    std::vector<std::byte> out;
    for (size_t i = 0; i < sent->pieces.size(); i++) {
        if (sent->pieces[i].returned != Returned::success) continue;
        add_piece(out, i, std::as_bytes(std::span(&file->status(), 1)));
    }
    if (out.empty()) co_return false;  // a null pointer
    const int64_t result = co_await worker_.forwarding.write_answer(*fragment, *sent, out, 0);
    if (worker_.find_thread(pid, tid) == &thread) end_call(thread, n, result);
    co_return true;
}

void Delegations::end_call(RemoteThread& thread, const Notification& n, int64_t result) {
    worker_.counts.delegated++;
    worker_.signals.hand_over_answered(thread);  // which came while something was fetched
    worker_.signals.note_interrupted(thread, false);
    thread.process->notifier->reply_raw(n.id, result);
}

DelegatedFile* Delegations::find(pid_t pid, int number, uint64_t id) {
    RemoteProcess* process = worker_.find_process(pid);
    if (!process) return nullptr;
    auto it = process->delegated.find(number);
    return it != process->delegated.end() && it->second->id() == id ? it->second.get() : nullptr;
}

void Delegations::give_back(RemoteProcess& process, int number) {
    auto it = process.delegated.find(number);
    if (it == process.delegated.end()) return;
    send_back(process.pid, number, it->second->id(), it->second->offset());
    process.delegated.erase(it);
}

void Delegations::give_back_all(RemoteProcess& process) {
    while (!process.delegated.empty()) give_back(process, process.delegated.begin()->first);
}

void Delegations::on_recall(const Frame& frame) {
    const auto recall = frame->session().getFileReturn();
    RemoteProcess* process = worker_.find_process(recall.getPid());
    if (process && find(recall.getPid(), recall.getNumber(), recall.getId())) {
        give_back(*process, recall.getNumber());
        return;
    }
    // It has not come yet, or has been given back already; then home does not heed this answer.
    if (!openings_.empty()) recalled_[recall.getId()] = last_opening_;
    send_back(recall.getPid(), recall.getNumber(), recall.getId(), offset_is_unchanged);
}

void Delegations::send_back(pid_t pid, int number, uint64_t id, uint64_t offset) {
    FrameBuilder frame;
    auto back = frame.session().initFileReturn();
    back.setPid(pid);
    back.setNumber(number);
    back.setId(id);
    back.setOffset(offset);
    worker_.link.send(frame, gpr::Priority::urgent);
}

}  // namespace gpr::worker
