// What libtomlplusplus.so has, for builds that link it statically where the distribution has it
// only shared.
#define TOML_IMPLEMENTATION
#include <toml++/toml.h>
