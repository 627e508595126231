// Where a session says what: to its user, in a report, in a log. Found and opened while the
// program's descriptors are still there, because some of these places are among them.
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

    // The log, and what goes on, from now on. Changes the process's standard logger, which must not
    // be used any more when this is gone.
    Result<> begin();

    // A line on stderr, after `gpr: `.
    void tell(const std::string& line);
    [[nodiscard]] SideWriter& user() { return *user_; }
    // In words on stderr, or as JSON where the user wants it.
    [[nodiscard]] bool wants_words() const { return stats_.enabled && stats_.file.empty(); }
    void report(const std::string& words, const std::string& json);

    // All that must stay open for this.
    [[nodiscard]] std::vector<int> descriptors() const;
    // What an acceptor of our own logs to: only a file can be shared.
    [[nodiscard]] LogOptions log_of_acceptor() const;
    // Absolute, or empty.
    [[nodiscard]] const std::string& record_file() const { return record_file_; }

private:
    StatsOptions stats_;
    LogOptions log_;
    std::string record_file_;
    std::unique_ptr<SideWriter> user_;
    std::shared_ptr<SideWriter> log_stream_;  // for what is not a file
    std::unique_ptr<SideWriter> stats_stream_;
};

}  // namespace gpr
