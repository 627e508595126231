// abort() ends the process with SIGABRT after flushed output.
#include "guest.h"

int main(void) {
    guest_passed();
    abort();
}
