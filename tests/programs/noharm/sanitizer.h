/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * A sanitizer's runtime ends the program when another library comes before it. Runs itself once more as a child.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char *argv[]) {
    enum { COUNT = 1 << 18 };
    double *values = malloc(COUNT * sizeof *values);
    if (values == NULL)
        return 1;
    double sum = 0;
    for (int i = 0; i < COUNT; i++)
        values[i] = i;
    for (int i = 0; i < COUNT; i++)
        sum += values[i];
    free(values);
    printf("%d %.0f\n", argc, sum);
    fflush(stdout);
    if (argc > 1)
        return 5;
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", argv[0], "child", (char *)NULL);
        _exit(9);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("child %d\n", WEXITSTATUS(status));
    return 3;
}
