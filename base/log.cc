#include "base/log.h"

#include <fcntl.h>
#include <spdlog/sinks/base_sink.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/fd.h"
#include "base/output_place.h"

namespace gpr {
namespace {

class DescriptorSink : public spdlog::sinks::base_sink<std::mutex> {
public:
    explicit DescriptorSink(Fd fd) : fd_(std::move(fd)) {}

protected:
    void sink_it_(const spdlog::details::log_msg& message) override {
        spdlog::memory_buf_t line;
        formatter_->format(message, line);
        hide_control_characters(line);
        // A log that cannot be written must not end the session.
        [[maybe_unused]] const auto written = write(fd_.get(), line.data(), line.size());
    }
    void flush_() override {}

private:
    // A peer may claim any name, and what is logged is one line for a terminal.
    static void hide_control_characters(spdlog::memory_buf_t& line) {
        for (size_t i = 0; i + 1 < line.size(); ++i) {
            const auto byte = static_cast<unsigned char>(line[i]);
            const auto next = static_cast<unsigned char>(line[i + 1]);
            const bool is_c1 = byte == 0xc2 && next >= 0x80 && next < 0xa0;  // in UTF-8
            if ((byte < ' ' && byte != '\t') || byte == 0x7f || is_c1) line[i] = '?';
        }
    }

    Fd fd_;
};

class LineSink : public spdlog::sinks::base_sink<std::mutex> {
public:
    explicit LineSink(WriteLine write) : write_(std::move(write)) {}

protected:
    void sink_it_(const spdlog::details::log_msg& message) override {
        spdlog::memory_buf_t line;
        formatter_->format(message, line);
        write_({line.data(), line.size()});
    }
    void flush_() override {}

private:
    WriteLine write_;
};

constexpr const char* for_people = "gpr: %v";

void use_sink(spdlog::sink_ptr sink, const char* pattern, const std::string& level) {
    auto logger = std::make_shared<spdlog::logger>("gpr", std::move(sink));
    logger->set_pattern(pattern);
    logger->set_level(spdlog::level::from_str(level));
    spdlog::set_default_logger(std::move(logger));
}

constexpr std::array levels = {"trace", "debug", "info", "warning", "error", "off"};

}  // namespace

bool is_log_level(const std::string& level) {
    return std::find(levels.begin(), levels.end(), level) != levels.end();
}

Result<> start_logging(const std::string& file, const std::string& level) {
    if (!is_log_level(level)) return fail(fmt::format("no log level is called '{}'", level));
    const bool to_stderr = file.empty();
    Fd fd;
    if (to_stderr) {
        fd = Fd(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
        // A closed stderr is the user's choice, so write nothing then.
        if (!fd) fd = Fd(open("/dev/null", O_WRONLY | O_CLOEXEC));
    } else {
        GPR_TRY(OutputPlace place, OutputPlace::find(file));
        const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
        fd = place.is_regular() ? Fd(open(place.path().c_str(), flags, 0600)) : place.take_stream();
    }
    if (!fd) return fail(errno, fmt::format("cannot open the log file {}", file));
    use_sink(std::make_shared<DescriptorSink>(std::move(fd)),
             to_stderr ? for_people : "%Y-%m-%dT%H:%M:%S.%f%z %P %l %v", level);
    return {};
}

void log_through(WriteLine write, const std::string& level) {
    use_sink(std::make_shared<LineSink>(std::move(write)), for_people, level);
}

}  // namespace gpr
