/* swap A B: exchange the names A and B as fast as possible until SIGTERM, then print how often that was. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXCHANGE 2

static volatile sig_atomic_t stopped;

static void stop(int number) {
    (void)number;
    stopped = 1;
}

int main(int count, char **words) {
    unsigned long swaps = 0;
    if (count != 3)
        return 2;
    signal(SIGTERM, stop);
    while (!stopped) {
        if (syscall(SYS_renameat2, AT_FDCWD, words[1], AT_FDCWD, words[2], EXCHANGE)) {
            perror("renameat2");
            return 1;
        }
        if (++swaps == 1) {
            puts("started");
            fflush(stdout);
        }
    }
    printf("%lu\n", swaps);
    return 0;
}
