// An open file or directory of home for which this node answers: what is known of it, and where the
// next read begins. Pure: knows no process and no link.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace gpr {

class DelegatedFile {
public:
    using Clock = std::chrono::steady_clock;

    // content: what the file begins with; of a directory all its entries, struct linux_dirent64.
    DelegatedFile(uint64_t id, const struct stat& status, std::vector<std::byte> content)
        : id_(id), status_(status), content_(std::move(content)) {}

    [[nodiscard]] uint64_t id() const { return id_; }
    [[nodiscard]] Clock::time_point since() const { return since_; }
    [[nodiscard]] const struct stat& status() const { return status_; }
    [[nodiscard]] bool is_directory() const { return S_ISDIR(status_.st_mode); }
    // Of a directory: as its file system counts it.
    [[nodiscard]] uint64_t offset() const { return offset_; }
    // So many bytes have been read, of content() or entries().
    void advance(uint64_t bytes);

    // lseek(2). nullopt: home has to answer.
    std::optional<int64_t> seek(int64_t by, int whence);

    // What a read of `most` bytes returns, as far as the end of the file. nullopt: not all of it is
    // known; missing() says what to ask home for.
    [[nodiscard]] std::optional<std::span<const std::byte>> content(uint64_t at,
                                                                    uint64_t most) const;
    // Of a directory: the next entries, of at most so many bytes; empty at its end. nullopt: none
    // has room in that.
    [[nodiscard]] std::optional<std::span<const std::byte>> entries(uint64_t most) const;
    struct Part {
        uint64_t at = 0, bytes = 0;
    };
    // The part that is to be fetched for such a read. Without bytes: it is too large.
    [[nodiscard]] Part missing(uint64_t at, uint64_t most) const;
    // The part has come. False: it is shorter than the file is.
    bool keep(Part part, std::vector<std::byte> bytes);

private:
    struct Entry {
        uint64_t bytes = 0;  // 0: there is none
        uint64_t next = 0;   // offset
    };
    [[nodiscard]] Entry entry(uint64_t at) const;
    std::optional<int64_t> seek_entry(int64_t by, int whence);
    [[nodiscard]] uint64_t size() const { return static_cast<uint64_t>(status_.st_size); }

    uint64_t id_;
    Clock::time_point since_ = Clock::now();
    struct stat status_;
    uint64_t offset_ = 0;
    uint64_t kept_at_ = 0;  // where content_ begins in the file
    uint64_t listed_ = 0;   // of a directory's content
    std::vector<std::byte> content_;
};

}  // namespace gpr
