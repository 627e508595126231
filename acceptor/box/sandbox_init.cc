#include "acceptor/box/sandbox_init.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "acceptor/box/privileges.h"

namespace gpr {
namespace {

constexpr int64_t ns_per_s = 1'000'000'000;
constexpr int alive_fd = 0;
constexpr int report_fd = 1;
constexpr int lock_fd = 2;    // of the session's user; kept as long as the box exists
constexpr int sysctl_fd = 3;  // /proc/sys/kernel
constexpr int first_free = 4;
// Next to the processes' root.
constexpr const char* nodes_folder = "nodes";

class Builder {
public:
    explicit Builder(const SandboxOptions& options) : options_(options) {}

    [[noreturn]] void run(int alive, int report) {
        keep_fds(alive, report);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NAME, "gpr-init");
        umask(022);
        make_time_namespace();
        set_names();
        make_root();
        if (options_.user != 0) become_owner();
        start_init();
    }

private:
    void send_report() {
        // A copy: g++-12 misjudges the member's size with sanitizers.
        const InitReport report = report_;
        [[maybe_unused]] const auto sent = write(report_fd, &report, sizeof(report));
    }

    void need(long returned, const char* step) {
        if (returned != -1) return;
        report_.error = errno;
        strncpy(report_.failed_step, step, sizeof(report_.failed_step) - 1);
        send_report();
        _exit(1);
    }

    void keep_fds(int alive, int report) {
        // Through high numbers, so that none overwrites another.
        constexpr int high = 16;
        const int lock = options_.user_lock;
        const int sysctl = open("/proc/sys/kernel", O_PATH | O_DIRECTORY | O_CLOEXEC);
        const std::array kept{alive, report, lock, sysctl};
        std::array<int, kept.size()> moved{};
        for (size_t i = 0; i < kept.size(); ++i) {
            moved[i] = kept[i] < 0 ? -1 : fcntl(kept[i], F_DUPFD_CLOEXEC, high);
        }
        for (int number = alive_fd; number < first_free; ++number) {
            const int from = moved[static_cast<size_t>(number)];
            if (from < 0) {
                close(number);
            } else {
                dup2(from, number);
            }
        }
        close_range(first_free, ~0U, 0);
    }

    // The creator of a user namespace owns it, and is charged on the host for what is counted in
    // it.
    void become_owner() {
        const uint32_t user = options_.user;
        need(syscall(SYS_setgroups, 0, nullptr), "drop supplementary groups");
        need(prctl(PR_SET_KEEPCAPS, 1), "keep capabilities");
        need(syscall(SYS_setresgid, user, user, user), "become the session's group");
        need(syscall(SYS_setresuid, user, user, user), "become the session's user");
        // Some hosts allow only privileged processes to create user namespaces.
        if (const auto regained = raise_permitted_capabilities(); !regained) {
            errno = regained.error().code;
            need(-1, "keep capabilities");
        }
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    }

    [[noreturn]] void start_init() {
        clone_args args{};
        args.flags = CLONE_PARENT | CLONE_CLEAR_SIGHAND | CLONE_NEWPID;
        if (!options_.host_network) args.flags |= CLONE_NEWNET;
        if (options_.user != 0) args.flags |= CLONE_NEWUSER;
        const long pid = syscall(SYS_clone3, &args, sizeof(args));
        need(pid, options_.user != 0 ? "make a user namespace" : "make a pid namespace");
        if (pid == 0) be_init();
        report_.init_pid = static_cast<int>(pid);
        send_report();
        _exit(0);
    }

    [[noreturn]] void be_init() {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        need(setsid(), "start a session");
        char byte = 0;
        if (read(alive_fd, &byte, 1) != 1) _exit(0);
        read_limit_of_ids();
        drop_privileges();
        // If SIGCHLD is ignored, the kernel reaps every orphan at once.
        signal(SIGCHLD, SIG_IGN);
        send_report();
        close(report_fd);
        while (read(alive_fd, &byte, 1) != 0) {
        }
        _exit(0);
    }

    // Newer kernels have a pid_max for each pid namespace, which only a process in it sees.
    void read_limit_of_ids() {
        const int file = openat(sysctl_fd, "pid_max", O_RDONLY | O_CLOEXEC);
        char text[16] = {};
        if (file != -1 && read(file, text, sizeof(text) - 1) > 0) {
            report_.limit_of_ids = std::atoi(text);
        }
        close(file);
        close(sysctl_fd);
    }

    // The builder stays outside, because offsets cannot be changed once a process is inside.
    void make_time_namespace() {
        if (!options_.clock_offsets) return;
        if (unshare(CLONE_NEWTIME) == -1) {
            if (errno == EINVAL || errno == ENOSYS) return;  // a kernel without time namespaces
            need(-1, "make a time namespace");
        }
        char text[128];
        const int length =
            snprintf(text, sizeof(text), "%s\n%s\n",
                     offset_line("monotonic", options_.clock_offsets->monotonic_ns).text,
                     offset_line("boottime", options_.clock_offsets->boottime_ns).text);
        const int file = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
        need(file, "open /proc/self/timens_offsets");
        need(write(file, text, static_cast<size_t>(length)), "set the clock offsets");
        close(file);
        report_.has_time_namespace = true;
    }

    struct Line {
        char text[56];
    };
    static Line offset_line(const char* clock, int64_t offset_ns) {
        // The nanoseconds must not be negative: -0.3 s is -1 s + 0.7 s.
        int64_t seconds = offset_ns / ns_per_s;
        int64_t nanoseconds = offset_ns % ns_per_s;
        if (nanoseconds < 0) {
            nanoseconds += ns_per_s;
            --seconds;
        }
        Line line;
        snprintf(line.text, sizeof(line.text), "%s %lld %lld", clock,
                 static_cast<long long>(seconds), static_cast<long long>(nanoseconds));
        return line;
    }

    void set_names() {
        // As much as the kernel takes: a peer may send any length.
        const auto host = options_.host_name.empty() ? "gpr" : options_.host_name.substr(0, 64);
        need(sethostname(host.data(), host.size()), "set the host name");
        const auto domain =
            options_.domain_name.empty() ? "(none)" : options_.domain_name.substr(0, 64);
        need(setdomainname(domain.data(), domain.size()), "set the domain name");
    }

    void make_root() {
        need(mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "make mounts private");
        std::vector<int> trees;
        for (const SandboxMount& wanted : options_.mounts) trees.push_back(copy_tree(wanted));
        // Any directory will do; /proc must exist, or we would not have come this far.
        const char* const root = "/proc";
        constexpr unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
        const bool empty = trees.empty();
        need(mount("gpr", root, "tmpfs", flags,
                   empty ? "size=4k,nr_inodes=2,mode=0555" : "size=1m,nr_inodes=4k,mode=0755"),
             "mount an empty root");
        need(chdir(root), "enter the empty root");
        need(mkdir(box_root + 1, 0755), "make the processes' root");
        need(chdir(box_root + 1), "enter the processes' root");
        if (!empty) copy_root_links();
        for (size_t i = 0; i < trees.size(); ++i) place_tree(trees[i], options_.mounts[i]);
        need(chdir(".."), "leave the processes' root");
        if (options_.user != 0) open_devices();
        need(mount(nullptr, ".", nullptr, MS_REMOUNT | MS_RDONLY | flags, nullptr),
             "make the root read-only");
        // Stacks the new root on the old one at "/".
        need(syscall(SYS_pivot_root, ".", "."), "change to the empty root (pivot_root)");
        need(umount2(".", MNT_DETACH), "let go of the host's files");
        need(chdir("/"), "enter the empty root");
    }

    // Links such as /lib to usr/lib are copied. The old root is still at "/".
    void copy_root_links() {
        std::error_code ignored;
        for (const auto& entry : std::filesystem::directory_iterator("/", ignored)) {
            const auto target = std::filesystem::read_symlink(entry.path(), ignored);
            if (ignored) continue;
            [[maybe_unused]] const int made =
                symlink(target.c_str(), entry.path().filename().c_str());
        }
    }

    int copy_tree(const SandboxMount& wanted) {
        const int tree = open_tree(AT_FDCWD, wanted.source.c_str(),
                                   OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
        need(tree, "copy a tree (open_tree)");
        mount_attr attributes{};
        attributes.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID;
        if (!wanted.source.starts_with("/dev/")) attributes.attr_set |= MOUNT_ATTR_NODEV;
        need(mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof(attributes)),
             "make a tree read-only (mount_setattr)");
        return tree;
    }

    // The working directory is the processes' root. A mount point inside of another mount must
    // exist there.
    void place_tree(int tree, const SandboxMount& wanted) {
        const std::string place = wanted.place.substr(1);
        for (size_t slash = place.find('/'); slash != std::string::npos;
             slash = place.find('/', slash + 1)) {
            mkdir(place.substr(0, slash).c_str(), 0755);
        }
        struct stat status {};
        need(fstat(tree, &status), "look at a tree");
        if (S_ISDIR(status.st_mode)) {
            mkdir(place.c_str(), 0755);
        } else {
            close(open(place.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
        }
        need(move_mount(tree, "", AT_FDCWD, place.c_str(), MOVE_MOUNT_F_EMPTY_PATH),
             "put a tree in its place (move_mount)");
        close(tree);
    }

    // Most device nodes belong to root or to groups of this host. For a device that the session was
    // given, a node is made that belongs to the session's user.
    void open_devices() {
        for (const SandboxMount& wanted : options_.mounts) {
            if (wanted.source.starts_with("/dev/")) open_devices_in(wanted);
        }
    }

    // The old root is still at "/"; the new one is the working directory.
    void open_devices_in(const SandboxMount& wanted) {
        std::error_code gone;
        open_device(wanted.source, wanted.place);
        if (!std::filesystem::is_directory(wanted.source, gone)) return;
        using Walk = std::filesystem::recursive_directory_iterator;
        for (Walk entry(wanted.source, gone), end; !gone && entry != end; entry.increment(gone)) {
            const std::string path = entry->path();
            open_device(path, wanted.place + path.substr(wanted.source.size()));
        }
    }

    void open_device(const std::string& source, const std::string& place) {
        struct stat node {};
        const bool known = lstat(source.c_str(), &node) == 0;
        const bool device = S_ISCHR(node.st_mode) || S_ISBLK(node.st_mode);
        constexpr mode_t open_to_all = S_IROTH | S_IWOTH;
        if (!known || !device || (node.st_mode & open_to_all) == open_to_all) return;
        if (devices_opened_ == 0) {
            need(mkdir(nodes_folder, 0755), "make a folder for devices");
            need(mount("gpr", nodes_folder, "tmpfs", MS_NOSUID | MS_NOEXEC, "size=64k,mode=0755"),
                 "mount a folder for devices");
        }
        char name[32];
        snprintf(name, sizeof(name), "%s/%d", nodes_folder, devices_opened_++);
        need(mknod(name, node.st_mode, node.st_rdev), "make a device node");
        need(chmod(name, node.st_mode & 0777), "make a device node");
        need(chown(name, options_.user, options_.user), "make a device node");
        const std::string there = std::string(box_root + 1) + place;
        need(mount(name, there.c_str(), nullptr, MS_BIND, nullptr), "put a device in its place");
        need(mount(nullptr, there.c_str(), nullptr,
                   MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NOEXEC, nullptr),
             "put a device in its place");
    }

    // Init holds a copy of the worker's memory, so nothing in the box may look into it.
    void drop_privileges() {
        if (const auto dropped = keep_only_capabilities(0); !dropped) {
            errno = dropped.error().code;
            need(-1, "drop init's privileges");
        }
        need(prctl(PR_SET_DUMPABLE, 0), "close init to ptrace");
        need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "forgo new privileges");
    }

    const SandboxOptions& options_;
    InitReport report_;
    int devices_opened_ = 0;
};

}  // namespace

void build_sandbox(const SandboxOptions& options, int alive, int report) {
    Builder(options).run(alive, report);
}

}  // namespace gpr
