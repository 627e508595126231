#include "monitor/home/digest_records.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <fstream>

#include "base/file_text.h"
#include "tests/unit/temporary_folder.h"

using namespace gpr::home;
using gpr::ContentDigest;
using gpr::TemporaryFolder;

namespace {

constexpr FileVersion file{1, 2, 3, 4'000, 5'000};
const ContentDigest digest{1, 2, 3};

}  // namespace

TEST_CASE("a digest is known in later sessions, until the file changes") {
    const TemporaryFolder root;
    const std::string path = root.path() + "/a/b/digests";
    DigestRecords(path).add(file, digest);
    CHECK(DigestRecords(path).find(file) == digest);
    for (const FileVersion& other :
         {FileVersion{9, 2, 3, 4'000, 5'000}, FileVersion{1, 9, 3, 4'000, 5'000},
          FileVersion{1, 2, 9, 4'000, 5'000}, FileVersion{1, 2, 3, 4'001, 5'000},
          FileVersion{1, 2, 3, 4'000, 5'001}}) {
        CHECK(!DigestRecords(path).find(other));
    }
    struct stat about {};
    REQUIRE(stat(path.c_str(), &about) == 0);
    CHECK((about.st_mode & 0777) == 0600);
}

TEST_CASE("two sessions add to the same records") {
    const TemporaryFolder root;
    const std::string path = root.path() + "/digests";
    DigestRecords one(path), two(path);
    CHECK(!one.find(file));
    CHECK(!two.find(file));
    one.add(file, digest);
    two.add({7, 7, 7, 7, 7}, {7});
    CHECK(DigestRecords(path).find(file) == digest);
    CHECK(DigestRecords(path).find({7, 7, 7, 7, 7}) == ContentDigest{7});
}

TEST_CASE("what is not a record is passed over") {
    const TemporaryFolder root;
    const std::string path = root.path() + "/digests";
    DigestRecords(path).add(file, digest);
    std::ofstream(path, std::ios::app) << "1 2 3\nwhat\n1 2 3 4 5 abc\n\n";
    DigestRecords(path).add({7, 7, 7, 7, 7}, {7});
    CHECK(DigestRecords(path).find(file) == digest);
    CHECK(DigestRecords(path).find({7, 7, 7, 7, 7}) == ContentDigest{7});
}

TEST_CASE("records that others could have written are not believed") {
    const TemporaryFolder root;
    const std::string path = root.path() + "/digests";
    DigestRecords(path).add(file, digest);
    chmod(path.c_str(), 0622);
    CHECK(!DigestRecords(path).find(file));
}

TEST_CASE("without a place they last as long as the session") {
    DigestRecords records("");
    records.add(file, digest);
    CHECK(records.find(file) == digest);
    DigestRecords nowhere("/proc/nowhere/digests");
    nowhere.add(file, digest);
    CHECK(nowhere.find(file) == digest);
}

TEST_CASE("the records do not grow without end") {
    const TemporaryFolder root;
    const std::string path = root.path() + "/digests";
    DigestRecords records(path);
    for (uint64_t i = 0; i < 20'000; i++)
        records.add({1, i % 100, i, 0, static_cast<int64_t>(i)}, {});
    CHECK(gpr::text_of(path).size() < 3'000'000);
    CHECK(DigestRecords(path).find({1, 99, 19'999, 0, 19'999}));
}

TEST_CASE("a file has settled when a change would show in its times") {
    constexpr int64_t second = 1'000'000'000, now = 100 * second;
    CHECK(has_settled({1, 2, 3, 90 * second, 90 * second}, now));
    CHECK(!has_settled({1, 2, 3, 90 * second, now}, now));
    CHECK(!has_settled({1, 2, 3, now + second, 90 * second}, now));
}
