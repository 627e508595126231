#include "base/output_place.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/side_writer.h"
#include "tests/unit/temporary_folder.h"

namespace {

std::string content(const std::string& path) {
    std::ifstream stream(path);
    return {std::istreambuf_iterator<char>(stream), {}};
}

std::string what_fails(const std::string& name) {
    const auto place = gpr::OutputPlace::find(name);
    return place ? "" : place.error().message();
}

}  // namespace

TEST_CASE("a regular file is found behind links and left as it is") {
    const gpr::TemporaryFolder folder;
    const std::string file = folder.write("file", "old");
    const std::string link = folder.path() + "/link";
    std::filesystem::create_symlink("file", link);
    const auto place = gpr::OutputPlace::find(link);
    REQUIRE(place);
    CHECK(place->is_regular());
    CHECK(place->path() == std::filesystem::canonical(file).string());
    CHECK(content(file) == "old");
    REQUIRE(gpr::replace_file(place->path(), "new"));
    CHECK(content(file) == "new");
    CHECK(std::filesystem::is_symlink(link));
    // One that does not exist yet, and a link to it.
    std::filesystem::create_symlink("later", folder.path() + "/dangling");
    const auto later = gpr::OutputPlace::find(folder.path() + "/dangling");
    REQUIRE(later);
    REQUIRE(gpr::replace_file(later->path(), "here"));
    CHECK(content(folder.path() + "/later") == "here");
}

TEST_CASE("a file that is replaced keeps its mode, and nothing is left beside it") {
    const gpr::TemporaryFolder folder;
    const std::string file = folder.write("file", "old", 0640);
    REQUIRE(gpr::replace_file(file, "new"));
    struct stat status {};
    REQUIRE(stat(file.c_str(), &status) == 0);
    CHECK((status.st_mode & 07777) == 0640);
    size_t files = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) {
        ++files;
    }
    CHECK(files == 1);
}

TEST_CASE("what is no regular file is written in place") {
    struct stat before {
    }, after{};
    REQUIRE(stat("/dev/null", &before) == 0);
    auto null = gpr::OutputPlace::find("/dev/null");
    REQUIRE(null);
    CHECK_FALSE(null->is_regular());
    CHECK(write(null->stream(), "x", 1) == 1);
    REQUIRE(stat("/dev/null", &after) == 0);
    CHECK(before.st_ino == after.st_ino);
    CHECK(S_ISCHR(after.st_mode));

    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const gpr::Fd reader(ends[0]), writer(ends[1]);
    auto place = gpr::OutputPlace::find("/dev/fd/" + std::to_string(writer.get()));
    REQUIRE(place);
    {
        gpr::SideWriter side(place->take_stream());
        side.write("through the pipe");
        side.flush();
    }
    char text[64] = {};
    CHECK(read(reader.get(), text, sizeof(text)) == 16);
    CHECK(std::string(text) == "through the pipe");
    CHECK_FALSE(gpr::OutputPlace::find("-")->is_regular());
    CHECK_FALSE(std::filesystem::exists("-"));
}

TEST_CASE("what cannot be written is told at once, without waiting") {
    const gpr::TemporaryFolder folder;
    const std::string fifo = folder.path() + "/fifo";
    REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
    CHECK(what_fails(fifo).find("nobody reads this pipe") != std::string::npos);
    CHECK(what_fails(folder.path()).find("Is a directory") != std::string::npos);
    CHECK(what_fails("/nonexistent/file").find("cannot write /nonexistent/file: No such") == 0);
    CHECK(what_fails("/dev/fd/999").find("Bad file descriptor") != std::string::npos);
    const gpr::Fd reader(open("/dev/null", O_RDONLY));
    CHECK(what_fails("/dev/fd/" + std::to_string(reader.get())).find("Bad file descriptor") !=
          std::string::npos);
}

TEST_CASE("a pipe that nobody empties keeps nobody waiting") {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const gpr::Fd reader(ends[0]);
    const auto begin = std::chrono::steady_clock::now();
    {
        gpr::SideWriter side{gpr::Fd(ends[1])};
        const std::string much(1 << 20, 'x');
        for (int i = 0; i < 4; ++i) side.write(much);
        side.flush();
    }
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(4));
}
