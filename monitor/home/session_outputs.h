// Where a session writes: messages to its user, a report, a log. All are opened while the program's
// descriptors still exist, because some of them are among these.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/output_place.h"
#include "base/result.h"
#include "base/side_writer.h"
#include "monitor/rules/exec_options.h"

namespace gpr {

class SessionOutputs {
public:
    // Errors name what cannot be written.
    static Result<SessionOutputs> open(const ExecOptions& options);

    // Starts the log and the progress display. Changes the process's default logger, which must not
    // be used after this object is destroyed.
    Result<> begin();

    // Writes a line to stderr, prefixed by `gpr: `.
    void tell(const std::string& line);
    [[nodiscard]] SideWriter& user() { return *user_; }
    void report(const std::string& words, const std::string& json);

    // The descriptors that must stay open.
    [[nodiscard]] std::vector<int> descriptors() const;
    // Log options for an acceptor inside this command; only a file can be shared with it.
    [[nodiscard]] LogOptions log_of_acceptor() const;
    // Absolute, or empty.
    [[nodiscard]] const std::string& record_file() const { return record_file_; }

private:
    StatsOptions stats_;
    LogOptions log_;
    std::string record_file_;
    std::unique_ptr<SideWriter> user_;
    std::shared_ptr<SideWriter> log_stream_;  // for a log that is not a file
    std::unique_ptr<SideWriter> stats_stream_;
};

}  // namespace gpr
