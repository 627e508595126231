// A place for output, by the name that the user gave. "-" is standard output; /dev/stdout,
// /dev/fd/N and the like are the descriptors they stand for; a regular file is replaced or appended
// to, and links to it are followed; anything else, such as a terminal, a device or a pipe, is
// opened and written to.
#pragma once

#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace gpr {

class OutputPlace {
public:
    // Fails at once if the place cannot be written, before anything has run, and changes nothing.
    // From now on descriptors, terminals, devices and pipes are open.
    static Result<OutputPlace> find(const std::string& name);

    // True: a file that exists or can be created, at path().
    [[nodiscard]] bool is_regular() const { return !stream_; }
    // Absolute, with all links resolved.
    [[nodiscard]] const std::string& path() const { return path_; }
    // The open descriptor of anything but a regular file.
    [[nodiscard]] int stream() const { return stream_.get(); }
    [[nodiscard]] Fd take_stream() { return std::move(stream_); }

private:
    std::string path_;
    Fd stream_;
};

// Replaces the content of a regular file, so that readers see either the old or the new content;
// its mode is kept. If a new file cannot be made in its folder, the file itself is overwritten.
Result<> replace_file(const std::string& path, std::string_view text);

}  // namespace gpr
