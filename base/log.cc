#include "base/log.h"

#include <fcntl.h>
#include <spdlog/sinks/base_sink.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/fd.h"

namespace gpr {
namespace {

class DescriptorSink : public spdlog::sinks::base_sink<std::mutex> {
public:
    explicit DescriptorSink(Fd fd) : fd_(std::move(fd)) {}

protected:
    void sink_it_(const spdlog::details::log_msg& message) override {
        spdlog::memory_buf_t line;
        formatter_->format(message, line);
        // A log that cannot be written must not end the session.
        [[maybe_unused]] const auto written = write(fd_.get(), line.data(), line.size());
    }
    void flush_() override {}

private:
    Fd fd_;
};

constexpr std::array levels = {"trace", "debug", "info", "warning", "error", "off"};

}  // namespace

bool is_log_level(const std::string& level) {
    return std::find(levels.begin(), levels.end(), level) != levels.end();
}

Result<> start_logging(const std::string& file, const std::string& level) {
    if (!is_log_level(level)) return fail(fmt::format("no log level is called '{}'", level));
    const bool to_stderr = file.empty();
    Fd fd(to_stderr ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)
                    : open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    // A closed stderr is the user's choice: say nothing then.
    if (!fd && to_stderr) fd = Fd(open("/dev/null", O_WRONLY | O_CLOEXEC));
    if (!fd) return fail(errno, fmt::format("cannot open the log file {}", file));

    auto logger =
        std::make_shared<spdlog::logger>("gpr", std::make_shared<DescriptorSink>(std::move(fd)));
    logger->set_pattern(to_stderr ? "gpr: %v" : "%Y-%m-%dT%H:%M:%S.%f%z %P %l %v");
    logger->set_level(spdlog::level::from_str(level));
    spdlog::set_default_logger(std::move(logger));
    return {};
}

}  // namespace gpr
