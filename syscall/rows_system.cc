#include "syscall/rows.h"

namespace gpr {
using namespace rows;
namespace {

constexpr const char* gone = "not implemented by Linux any more";

// clang-format off
constexpr Row table[] = {
    {63, "uname", home, full, by_rule, {out(utsname_size)}},
    {99, "sysinfo", home, full, by_rule, {out(sysinfo_size)}, "describes home"},
    {101, "ptrace", home, partial, blocks | notify, {num, num, raw, raw},
     "who traces or is traced comes home"},
    {103, "syslog", home, full, blocks, {num, narrow(out_n(2)), num}},
    {134, "uselib", refused, none, plain, {raw}, gone},
    {153, "vhangup", home, full, plain, {}},
    {154, "modify_ldt", refused, none, plain, {num, raw, num},
     "descriptor tables do not cross; a kernel may be built without it"},
    {156, "_sysctl", refused, none, plain, {raw}, gone},
    {163, "acct", home, full, plain, {text}},
    {167, "swapon", home, full, plain, {text, num}},
    {168, "swapoff", home, full, plain, {text}},
    {169, "reboot", home, full, final, {num, num, num, raw}},
    {170, "sethostname", home, partial, plain, {narrow(in_n(1)), num},
     "the acceptor keeps the host name it began with"},
    {171, "setdomainname", home, full, plain, {narrow(in_n(1)), num}},
    {172, "iopl", home, none, plain, {num}, "port access works at home only"},
    {173, "ioperm", home, none, plain, {num, num, num}, "port access works at home only"},
    {174, "create_module", refused, none, plain, {}, gone},
    {175, "init_module", home, full, plain, {in_n(1), num, text}},
    {176, "delete_module", home, full, plain, {text, num}},
    {177, "get_kernel_syms", refused, none, plain, {}, gone},
    {178, "query_module", refused, none, plain, {}, gone},
    {180, "nfsservctl", refused, none, plain, {}, gone},
    {181, "getpmsg", refused, none, plain, {}, gone},
    {182, "putpmsg", refused, none, plain, {}, gone},
    {183, "afs_syscall", refused, none, plain, {}, gone},
    {184, "tuxcall", refused, none, plain, {}, gone},
    {185, "security", refused, none, plain, {}, gone},
    {205, "set_thread_area", refused, none, plain, {}, "not implemented on x86-64"},
    {211, "get_thread_area", refused, none, plain, {}, "not implemented on x86-64"},
    {212, "lookup_dcookie", refused, none, plain, {}, gone},
    {214, "epoll_ctl_old", refused, none, plain, {}, gone},
    {215, "epoll_wait_old", refused, none, plain, {}, gone},
    {236, "vserver", refused, none, plain, {}, gone},
    {246, "kexec_load", home, full, plain, {num, num, raw, num}},
    {298, "perf_event_open", home, partial, opens, {raw, num, num, fd, num},
     "counts what the shadow at home does"},
    {313, "finit_module", home, full, plain, {fd, text, num}},
    {317, "seccomp", special, partial, notify, {num, num, raw},
     "a listener of the program's own is refused with EBUSY", {there::forward, here::let_run}},
    // Random bytes of any node will do.
    {318, "getrandom", native, full, by_rule, {out_n(1), num, num}},
    {320, "kexec_file_load", home, full, plain, {fd, fd, num, raw, num}},
    {321, "bpf", home, partial, opens, {num, raw, num}, "programs load into home's kernel"},
    // Made by the kernel's own trampolines when the program is probed; refusing it would break
    // them.
    {335, "uretprobe", native, full, plain, {}},
    {336, "uprobe", native, full, plain, {}},
    {444, "landlock_create_ruleset", home, full, opens, {in_n(1), num, num}},
    {445, "landlock_add_rule", home, full, plain, {fd, num, raw, num}},
    {446, "landlock_restrict_self", home, partial, plain, {fd, num},
     "the acceptor reaches no files but its devices, which are not restricted"},
    {459, "lsm_get_self_attr", home, full, plain, {num, raw, raw, num}},
    {460, "lsm_set_self_attr", home, full, plain, {num, raw, num, num}},
    {461, "lsm_list_modules", home, full, plain, {raw, raw, num}},
};
// clang-format on

}  // namespace

std::span<const Row> system_rows() { return table; }

}  // namespace gpr
