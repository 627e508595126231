// The library in which function_symbols_test.cc looks for functions.
int choose_first(int a) { return a + 1; }
int choose_second(int a) { return choose_first(a) * 2; }
int choose_alias(int a) __attribute__((alias("choose_second")));
int leave_alone(int a) { return a - 1; }
int choose_data = 4;
extern int choose_elsewhere(int a);
int leave_caller(int a) { return choose_elsewhere(a); }

static int found(int a) { return a * 7; }
static int (*find(void))(int) { return found; }
int choose_resolved(int a) __attribute__((ifunc("find")));
// Not a symbol that others see, so that only unwind information knows where it is.
int (*leave_found(void))(int) { return find(); }

__asm__(
    ".text\n"
    ".globl choose_sizeless, leave_next, choose_inside\n"
    ".type choose_sizeless, @function\n"
    ".type leave_next, @function\n"
    ".type choose_outside, @function\n"
    ".type choose_inside, @function\n"
    ".globl choose_outside\n"
    "choose_sizeless: nop\n"
    "ret\n"
    "leave_next: ret\n"
    ".size leave_next, 1\n"
    "choose_outside: nop\n"
    "choose_inside: nop\n"
    "ret\n"
    ".size choose_inside, 2\n"
    ".size choose_outside, 3\n");
