#include "transport/host.h"

#include <capnp/message.h>
#include <doctest/doctest.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>

using namespace gpr;

TEST_CASE("this host describes itself") {
    auto host = describe_this_host();
    utsname names{};
    ::uname(&names);
    CHECK(host.host_name == names.nodename);
    CHECK(host.kernel_release == names.release);
    CHECK(host.page_size == static_cast<uint64_t>(::getpagesize()));
    CHECK(host.cpu.count >= 1);
    CHECK_FALSE(host.cpu.vendor.empty());
    CHECK((host.cpu.xcr0 & 3) == 3);     // x87 and SSE, on every x86-64
    CHECK(host.cpu.xsave_bytes >= 576);  // legacy area and header
    CHECK(host.limits.open_files_hard >= host.limits.open_files_soft);
    CHECK(host.limits.pid_max > 0);
    auto leaf = std::find_if(host.cpu.leaves.begin(), host.cpu.leaves.end(),
                             [](const CpuidLeaf& l) { return l.leaf == 1; });
    REQUIRE(leaf != host.cpu.leaves.end());
    CHECK((leaf->edx >> 26 & 1) == 1);  // SSE2
}

TEST_CASE("a description survives the wire") {
    auto host = describe_this_host();
    host.features = {"userfaultfd", "time namespaces"};
    host.devices = {"/dev/kvm", "/dev/dri/renderD128"};
    capnp::MallocMessageBuilder message;
    write_host(host, message.initRoot<wire::Host>());
    CHECK(read_host(message.getRoot<wire::Host>().asReader()) == host);
}
