// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = node
// corpus: finding = shared-read
// corpus: partition = shared
// corpus: remote = 0.5
// corpus: fix = words
// corpus: plan = none
// corpus: watch = none (no watchpoints are set on small blocks)
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = The main thread builds a list of 400,000 nodes of 72 bytes, and all threads walk all of it.

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, NODES = 400000 };
static const double RUN_S = 1.2;

struct node {
    struct node *next;
    double value[8];
};

int main(void) {
    struct node *head = NULL;
    for (int i = 0; i < NODES; i++) {
        struct node *node = malloc(sizeof *node); // @allocated @first-touch
        if (!node)
            return 1;
        for (int j = 0; j < 8; j++)
            node->value[j] = 1.0;
        node->next = head;
        head = node;
    }

    int bad = 0;
    for (double end = omp_get_wtime() + RUN_S; omp_get_wtime() < end;) {
#pragma omp parallel num_threads(THREADS) reduction(| : bad)
        {
            double sum = 0.0;
            for (struct node *at = head; at; at = at->next) // @used
                sum += at->value[3];                        // @used
            bad |= sum != (double)NODES;
        }
    }

    while (head) {
        struct node *next = head->next;
        free(head);
        head = next;
    }
    puts(bad ? "bad" : "ok");
    return bad;
}
