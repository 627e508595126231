#include "monitor/home/file_contents.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "monitor/home/home.h"
#include "transport/content_hash.h"

namespace gpr::home {

namespace {

// Smaller ones travel as fast as they could be asked for; of larger ones little is used.
constexpr uint64_t least_size = 32u << 10, most_size = uint64_t{4} << 30;
constexpr size_t hash_step = 256u << 10;  // bytes
constexpr uint32_t most_piece = 1u << 20;
constexpr unsigned most_reading = 64;
constexpr uint64_t most_queued = 16u << 20;  // bytes for one acceptor

int64_t now_ns() {
    return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Whether the times of files tell of every change, and no other file ever has the same inode with
// the same times. Not tmpfs, where stores to shared mappings leave no trace; not images that are
// built (squashfs), whose inodes and times come from who has built them; not network file systems.
bool tells_of_changes(const std::string& path) {
    constexpr long xfs = 0x58465342, zfs = 0x2fc12fc1;
    struct statfs of {};
    if (statfs(path.c_str(), &of) != 0) return false;
    const long types[] = {EXT4_SUPER_MAGIC, BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC, xfs, zfs};
    return std::ranges::find(types, of.f_type) != std::end(types);
}

// Whether somebody may write to it: who has mapped it already could do so without a new time. Only
// the file's owner can ask; nobody writes to the libraries of others so.
bool is_being_written(const Fd& file) {
    if (fcntl(file.get(), F_SETLEASE, F_RDLCK) != 0) return errno == EAGAIN;
    fcntl(file.get(), F_SETLEASE, F_UNLCK);
    return false;
}

// The same file with the same content.
Fd open_same(const std::string& path, const FileVersion& file) {
    Fd opened(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    struct stat about {};
    const bool same = opened && fstat(opened.get(), &about) == 0 && version_of(about) == file;
    return same ? std::move(opened) : Fd();
}

std::optional<ContentDigest> digest_of(const std::string& path, const FileVersion& file,
                                       const IdleThread::Stopped& stopped) {
    const Fd opened = open_same(path, file);
    if (!opened || is_being_written(opened)) return std::nullopt;
    ContentHash hash;
    RawBytes piece(hash_step);
    for (uint64_t done = 0; done < file.size;) {
        const ssize_t got =
            pread(opened.get(), piece.data(), piece.size(), static_cast<off_t>(done));
        if (got <= 0 || stopped) return std::nullopt;
        hash.add(std::span(piece).first(static_cast<size_t>(got)));
        done += static_cast<uint64_t>(got);
    }
    struct stat about {};
    const bool same = fstat(opened.get(), &about) == 0 && version_of(about) == file;
    return same && !is_being_written(opened) ? std::optional(hash.finish()) : std::nullopt;
}

}  // namespace

FileContents::FileContents(Home& home)
    : home_(home), records_(default_digest_records()), thread_(home.loop) {}

bool FileContents::any_keeps() const {
    bool any = false;
    home_.acceptors.each([&](const RemoteNode& node) { any = any || node.keeps_contents; });
    return any;
}

void FileContents::name(Mapping& m, const std::string& path, const MapsEntry* shown) {
    m.digest.reset();
    const bool plain = m.file && !m.shared && !m.anchored && m.source == 0 && m.follows == 0;
    if (!plain || (m.prot & PROT_WRITE) || !any_keeps()) return;
    struct stat about {};
    if (stat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return;
    // In another mount namespace the path may lead elsewhere.
    const bool same = !shown || (about.st_ino == shown->inode && about.st_dev == shown->device);
    if (!same || !tells_of_changes(path)) return;
    const FileVersion file = version_of(about);
    if (file.size < least_size || file.size > most_size || !has_settled(file, now_ns())) return;
    const auto digest = records_.find(file);
    if (digest) m.digest = std::make_shared<const ContentDigest>(*digest);
    if (!(m.prot & PROT_EXEC)) return;
    // The descriptor may be closed soon.
    std::error_code error;
    const std::string lasting = std::filesystem::read_symlink(path, error).string();
    const std::string& place = error ? path : lasting;
    if (digest) {
        offer(*digest, {place, file});
    } else if (!hashed_.contains(file) && hash(place, file)) {
        hashed_.insert(file);
    }
}

bool FileContents::hash(const std::string& path, const FileVersion& file) {
    auto made = std::make_shared<std::optional<ContentDigest>>();
    return thread_.run(
        [path, file, made](const IdleThread::Stopped& stopped) {
            *made = digest_of(path, file, stopped);
        },
        [this, path, file, made] {
            if (!*made) return;
            records_.add(file, **made);
            offer(**made, {path, file});
        });
}

void FileContents::offer(const ContentDigest& digest, Source source) {
    const uint64_t size = source.file.size;
    if (!offered_.emplace(digest, std::move(source)).second) return;
    home_.acceptors.each([&](const RemoteNode& node) { offer_to(node, digest, size); });
}

void FileContents::offer_to(const RemoteNode& node, const ContentDigest& digest, uint64_t size) {
    if (!node.keeps_contents) return;
    FrameBuilder frame;
    auto content = frame.session().initContent();
    content.setDigest(kj::ArrayPtr<const uint8_t>(digest.data(), digest.size()));
    content.setOffer(size);
    node.link.send(frame, Priority::bulk);
}

void FileContents::on_new_acceptor(const RemoteNode& node) {
    for (const auto& [digest, source] : offered_) offer_to(node, digest, source.file.size);
}

void FileContents::on_frame(RemoteNode& node, const Frame& frame) {
    auto content = frame->session().getContent();
    const auto digest = digest_of_bytes(content.getDigest());
    const auto source = digest ? offered_.find(*digest) : offered_.end();
    if (source == offered_.end() || !content.isWanted()) return;
    // It has asked without waiting for answers.
    if (reading_ >= most_reading || node.link.queued_bytes() > most_queued) return;
    reading_++;
    const uint64_t offset = content.getWanted().getOffset();
    const uint32_t bytes = std::min(content.getWanted().getBytes(), most_piece);
    auto piece = std::make_shared<RawBytes>();
    auto read = [from = source->second, offset, bytes, piece](const IdleThread::Stopped&) {
        const Fd file = open_same(from.path, from.file);
        *piece = RawBytes(bytes);
        const ssize_t got = pread(file.get(), piece->data(), bytes, static_cast<off_t>(offset));
        piece->shorten(got > 0 ? static_cast<size_t>(got) : 0);
    };
    thread_.run(std::move(read),
                [this, to = node.id, digest = *digest, piece] { send_piece(to, digest, *piece); });
}

void FileContents::send_piece(NodeId to, const ContentDigest& digest, const RawBytes& bytes) {
    reading_--;
    if (!home_.acceptors.contains(to)) return;
    FrameBuilder frame;
    auto content = frame.session().initContent();
    content.setDigest(kj::ArrayPtr<const uint8_t>(digest.data(), digest.size()));
    content.setPiece();
    frame.add_raw(bytes);
    home_.acceptors.at(to).link.send(frame, Priority::bulk);
}

}  // namespace gpr::home
