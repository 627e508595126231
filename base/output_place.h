// A place that a user named for output. "-" is standard output; /dev/stdout, /dev/fd/N and the like
// are the descriptors they stand for; regular files are replaced or appended to, links to them
// followed; all else, such as terminals, devices and pipes, is written where it is.
#pragma once

#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace gpr {

class OutputPlace {
public:
    // Says now what cannot be written, before anything has run, and changes nothing. Descriptors
    // and what is written in place are open from now on.
    static Result<OutputPlace> find(const std::string& name);

    // A file that exists or can be made, at path().
    [[nodiscard]] bool is_regular() const { return !stream_; }
    // Absolute, behind all links.
    [[nodiscard]] const std::string& path() const { return path_; }
    // What is written in place.
    [[nodiscard]] int stream() const { return stream_.get(); }
    [[nodiscard]] Fd take_stream() { return std::move(stream_); }

private:
    std::string path_;
    Fd stream_;
};

// Puts the text in the place of a regular file's content, so that whoever looks sees the old one or
// the new one; its mode stays. Where its folder cannot be written the file itself is.
Result<> replace_file(const std::string& path, std::string_view text);

}  // namespace gpr
