#include "monitor/home/session_outputs.h"

#include <fcntl.h>

#include "base/log.h"

namespace gpr {

Result<SessionOutputs> SessionOutputs::open(const ExecOptions& options) {
    SessionOutputs outputs;
    outputs.stats_ = options.stats;
    outputs.log_ = options.log;
    if (!options.stats.file.empty()) {
        GPR_TRY(OutputPlace place, OutputPlace::find(options.stats.file));
        outputs.stats_.file = place.path();
        if (!place.is_regular()) {
            outputs.stats_stream_ = std::make_unique<SideWriter>(place.take_stream());
        }
    }
    if (!options.log.file.empty()) {
        GPR_TRY(OutputPlace place, OutputPlace::find(options.log.file));
        outputs.log_.file = place.path();
        if (!place.is_regular()) {
            outputs.log_stream_ = std::make_shared<SideWriter>(place.take_stream());
        }
    }
    if (!options.record_file.empty()) {
        GPR_TRY(const OutputPlace place, OutputPlace::find(options.record_file));
        // It is mapped, so that it is complete even if the monitor is killed.
        if (!place.is_regular()) {
            return fail(
                fmt::format("cannot record to {}: it is not a regular file", options.record_file));
        }
        outputs.record_file_ = place.path();
    }
    // If stderr is closed, that was the user's choice.
    outputs.user_ =
        std::make_unique<SideWriter>(Fd(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)));
    return outputs;
}

Result<> SessionOutputs::begin() {
    if (log_stream_) {
        log_through([to = log_stream_](std::string_view line) { to->write(line); }, log_.level);
    } else if (!log_.file.empty()) {
        return start_logging(log_.file, log_.level);
    } else if (log_.on_stderr) {
        log_through([to = user_.get()](std::string_view line) { to->write(line); }, log_.level);
    } else {
        log_through([](std::string_view) {}, "off");
    }
    return {};
}

void SessionOutputs::tell(const std::string& line) {
    user_->write("gpr: " + line + "\n");
    // It must appear before the shell's next prompt.
    user_->flush();
}

void SessionOutputs::report(const std::string& words, const std::string& json) {
    if (!stats_.enabled) return;
    if (stats_stream_) {
        stats_stream_->write(json);
        stats_stream_->flush();
    } else if (stats_.file.empty()) {
        user_->write(words);
        user_->flush();
    } else if (const auto written = replace_file(stats_.file, json); !written) {
        tell(written.error().message());
    }
}

std::vector<int> SessionOutputs::descriptors() const {
    std::vector<int> all = {user_->fd()};
    if (log_stream_) all.push_back(log_stream_->fd());
    if (stats_stream_) all.push_back(stats_stream_->fd());
    return all;
}

LogOptions SessionOutputs::log_of_acceptor() const {
    return log_stream_ || log_.file.empty() ? LogOptions{} : log_;
}

}  // namespace gpr
