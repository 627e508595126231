// stdio: buffered output, seeks, ungetc, printf of every kind, temporary files.
#include <math.h>
#include <wchar.h>

#include "guest.h"

int main(void) {
    FILE* file = fopen("text", "w+");
    CHECK(file != NULL);
    for (int i = 0; i < 20000; i++)
        fprintf(file, "line %d %s %.3f\n", i, i % 2 ? "odd" : "even", i / 7.0);
    CHECK_EQ(fflush(file), 0);
    rewind(file);
    char line[100];
    int count = 0;
    while (fgets(line, sizeof line, file)) count++;
    CHECK_EQ(count, 20000);
    CHECK_EQ(fseek(file, 5, SEEK_SET), 0);
    CHECK_EQ(getc(file), '0');
    CHECK_EQ(ungetc('9', file), '9');
    CHECK_EQ(getc(file), '9');
    CHECK_EQ(fclose(file), 0);
    file = tmpfile();
    CHECK(file != NULL);
    CHECK_EQ(fwrite(line, 1, 10, file), 10);
    CHECK_EQ(fclose(file), 0);
    printf("%d %5d|%-5d|%05d %x %#o %lld %zu %c %s %10.3s|\n", 1, 2, 3, 4, 255, 8, 1LL << 60,
           sizeof line, 'c', "text", "abcdef");
    printf("%f %e %g %a %Lf %.20Lf\n", 3.25, 1e100, 1e-5, 0.5, 1.25L, 0.1L);
    printf("%p %f %f\n", (void*)0x1234, (double)NAN * 0 + INFINITY, -INFINITY);
    return guest_passed();
}
