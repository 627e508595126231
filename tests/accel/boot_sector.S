# A boot sector: greets on the serial port, adds up a million numbers, shows the sum in hexadecimal
# and resets the machine, by the keyboard controller.
.code16
.globl _start
_start:
    cli
    xorw %ax, %ax
    movw %ax, %ds
    movw %ax, %ss
    movw $0x7c00, %sp
    movw $greeting, %si
1:  lodsb
    testb %al, %al
    jz 2f
    movw $0x3f8, %dx
    outb %al, %dx
    jmp 1b

2:  xorl %ecx, %ecx
    xorl %ebx, %ebx
3:  addl %ecx, %ebx
    incl %ecx
    cmpl $1000000, %ecx
    jne 3b

    movl %ebx, %eax
    movw $8, %cx
4:  roll $4, %eax
    pushw %ax
    andb $15, %al
    addb $'0', %al
    cmpb $'9', %al
    jbe 5f
    addb $7, %al
5:  movw $0x3f8, %dx
    outb %al, %dx
    popw %ax
    loop 4b
    movb $'\n', %al
    outb %al, %dx
    movb $0xfe, %al
    outb %al, $0x64
6:  hlt
    jmp 6b

greeting:
    .asciz "hello from a guest\n"
    .org 510
    .word 0xaa55
