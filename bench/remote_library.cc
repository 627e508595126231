// The part of library_subject that a split rule sends to the acceptor.
extern "C" long bench_remote(long x) { return x + 1; }
