// In which order programs look for files. Who searches does so in the same way again: for several
// names in one directory after another, or for one name in several directories. What has followed
// twice elsewhere is sent ahead. Pure: knows no process and no file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace gpr::home {

class LookupSequences {
public:
    // A path in two parts, as the program writes it.
    struct Place {
        std::string directory;  // with a slash at its end, or empty
        std::string name;
        bool operator==(const Place&) const = default;
    };

    // reader: whoever asks; its look-ups follow each other.
    void note(uint32_t reader, const Place& asked);
    // The reader has been told of this place before it asked, so it will not ask.
    void note_told(uint32_t reader, const Place& place);
    // What will be asked for after this, in order. absent: there is nothing; else a search for the
    // name ends here.
    [[nodiscard]] std::vector<Place> after(const Place& asked, bool absent) const;
    void forget(uint32_t reader);

private:
    struct Next {
        std::string text;
        unsigned seen = 0;  // in a row, more or less
    };
    using Steps = std::unordered_map<std::string, Next>;

    static void learn(Steps& steps, const std::string& from, const std::string& to);
    static std::vector<std::string> follow(const Steps& steps, const std::string& from,
                                           size_t most);

    Steps names_;        // in the same directory
    Steps directories_;  // for the same name
    std::map<uint32_t, Place> last_;
};

}  // namespace gpr::home
