// `gpr core PID`: a core file of a process of a session, which goes on.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <vector>

#include "base/fd.h"
#include "base/output_place.h"
#include "monitor/control/core_connection.h"
#include "tools/sessions.h"

namespace gpr {

const CommandSpec& core_spec() {
    static const CommandSpec spec{
        "core",
        "[-o FILE] PID",
        "Write a core file of a process of a session, which goes on: all of its threads, with "
        "their registers, and all of its memory, wherever they are. Read it with:\n\n"
        "  gdb PROGRAM FILE",
        {{"output", SettingKind::text, "FILE",
          "instead of core.PID in this folder; -: standard output", false, 'o'}},
        false,
        1,
        "exit status: 0; 1 no core file was written, and why is said",
        "The process stands while the file is written. What is at acceptors crosses the link, and "
        "stays here until it is used there again. Pages that were never used are holes in the "
        "file, and zeros in a pipe; code that is as in its file is left out, as by the kernel."};
    return spec;
}

namespace {

constexpr size_t most_at_once = 1 << 20;

// Where the core file goes. A regular file gets its name when it is complete.
class CoreOutput {
public:
    static Result<CoreOutput> open(const std::string& name) {
        CoreOutput output;
        GPR_TRY(output.place_, OutputPlace::find(name));
        if (!output.place_.is_regular()) {
            output.fd_ = output.place_.take_stream();
            return output;
        }
        output.unfinished_ = fmt::format("{}.{}.part", output.place_.path(), getpid());
        output.fd_ =
            Fd(::open(output.unfinished_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
        if (!output.fd_) return fail(errno, "cannot write " + output.unfinished_);
        remove_when_interrupted(output.unfinished_);
        return output;
    }
    CoreOutput(CoreOutput&& other) noexcept
        : place_(std::move(other.place_)),
          fd_(std::move(other.fd_)),
          unfinished_(std::exchange(other.unfinished_, "")),
          written_(other.written_) {}
    CoreOutput& operator=(CoreOutput&&) = delete;
    ~CoreOutput() {
        if (!unfinished_.empty()) unlink(unfinished_.c_str());
    }

    // At ascending offsets.
    Result<> put(uint64_t offset, std::span<const char> bytes) {
        GPR_CHECK(skip_to(offset));
        return write_all(bytes);
    }

    Result<> finish(uint64_t size) {
        GPR_CHECK(skip_to(size));
        if (unfinished_.empty()) return {};
        if (ftruncate(fd_.get(), static_cast<off_t>(size)) != 0 ||
            rename(unfinished_.c_str(), place_.path().c_str()) != 0) {
            return fail(errno, "cannot write " + place_.path());
        }
        unfinished_.clear();
        return {};
    }

private:
    CoreOutput() = default;

    static void remove_when_interrupted(const std::string& path) {
        static std::string unfinished;
        unfinished = path;
        for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
            std::signal(signal, [](int which) {
                unlink(unfinished.c_str());
                std::signal(which, SIG_DFL);
                raise(which);
            });
        }
    }

    Result<> skip_to(uint64_t offset) {
        if (offset < written_) return fail("the session sent a core file that is out of order");
        if (!unfinished_.empty()) {
            if (lseek(fd_.get(), static_cast<off_t>(offset), SEEK_SET) < 0) {
                return fail(errno, "cannot write " + unfinished_);
            }
            written_ = offset;
            return {};
        }
        static const std::vector<char> zeros(most_at_once);
        while (written_ < offset) {
            const size_t part = std::min<uint64_t>(zeros.size(), offset - written_);
            GPR_CHECK(write_all(std::span(zeros).first(part)));
        }
        return {};
    }

    Result<> write_all(std::span<const char> bytes) {
        while (!bytes.empty()) {
            const ssize_t wrote = write(fd_.get(), bytes.data(), bytes.size());
            if (wrote < 0 && errno == EINTR) continue;
            if (wrote < 0) return fail(errno, "cannot write the core file");
            bytes = bytes.subspan(static_cast<size_t>(wrote));
            written_ += static_cast<uint64_t>(wrote);
        }
        return {};
    }

    OutputPlace place_;
    Fd fd_;
    std::string unfinished_;  // empty: written to a stream, or complete
    uint64_t written_ = 0;
};

// Pages of acceptors may be on their way; a link that brings none is given up earlier.
constexpr int patience_ms = 20'000;

Result<> read_all(int from, std::span<char> bytes) {
    while (!bytes.empty()) {
        pollfd session{from, POLLIN, 0};
        if (poll(&session, 1, patience_ms) == 0) {
            return fail(session_is_mute(from, patience_ms / 1000));
        }
        const ssize_t got = recv(from, bytes.data(), bytes.size(), 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return fail("the session ended before the core file was complete");
        bytes = bytes.subspan(static_cast<size_t>(got));
    }
    return {};
}

// Returns the file's size.
Result<uint64_t> receive_core(int from, CoreOutput& output) {
    std::vector<char> bytes(most_at_once);
    for (;;) {
        CoreRecord record;
        GPR_CHECK(read_all(from, {reinterpret_cast<char*>(&record), sizeof record}));
        const bool is_error = record.offset == CoreRecord::is_error;
        if (!is_error && record.length == 0) {
            GPR_CHECK(output.finish(record.offset));
            return record.offset;
        }
        for (uint64_t done = 0; done < record.length;) {
            const auto part =
                std::span(bytes).first(std::min<uint64_t>(bytes.size(), record.length - done));
            GPR_CHECK(read_all(from, part));
            if (is_error) return fail(std::string(part.begin(), part.end()));
            GPR_CHECK(output.put(record.offset + done, part));
            done += part.size();
        }
        if (is_error) return fail("the session cannot write a core file, and does not say why");
    }
}

Result<uint64_t> write_core_file(const ListedSession& session, pid_t pid, const std::string& name) {
    GPR_TRY(CoreOutput output, CoreOutput::open(name));
    GPR_TRY(const Fd connection, session.client.core(pid));
    return receive_core(connection.get(), output);
}

}  // namespace

int core_main(const Words& arguments) {
    return run_observer(core_spec(), arguments, [](const ParsedCommand& parsed) {
        return with_session(parsed, [&](const ListedSession& session, pid_t pid) {
            const pid_t process = program_of(session, pid);
            const std::string name =
                Settings({parsed.flags}).text("output", fmt::format("core.{}", process));
            const auto size = write_core_file(session, process, name);
            if (!size) {
                complain(size.error().message());
                return exit_failed;
            }
            std::fprintf(stderr, "gpr: %s: %s\n", name == "-" ? "standard output" : name.c_str(),
                         megabytes_text(static_cast<double>(*size)).c_str());
            return 0;
        });
    });
}

}  // namespace gpr
