/* A plain pread loop: threads take chunks from a counter and read each whole, into a ring of record buffers.
   loop FILE THREADS RECORDS RECORD_BYTES CHUNKS SLOTS PAGE ROUNDS HUGE -> seconds by the clock, and of all cores */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static int file;
static long records, size, chunks, slots, page, rounds;
static char *memory;
static atomic_long next;

static void *work(void *unused) {
    (void)unused;
    for (;;) {
        long job = atomic_fetch_add(&next, 1);
        if (job >= records * chunks * rounds) return NULL;
        long record = job / chunks % records, chunk = job % chunks;
        long pages = size / page, share = pages / chunks, rest = pages % chunks;
        long first = chunk * share + (chunk < rest ? chunk : rest), count = share + (chunk < rest);
        char *into = memory + job / chunks % slots * size + first * page;
        long at = record * size + first * page, left = count * page;
        while (left > 0) {
            ssize_t came = pread(file, into, left, at);
            if (came < 0 && errno == EINTR) continue;
            if (came <= 0) { perror("pread"); exit(1); }
            into += came; at += came; left -= came;
        }
    }
}

int main(int count, char **words) {
    if (count != 10) return 2;
    long threads = atol(words[2]);
    records = atol(words[3]); size = atol(words[4]); chunks = atol(words[5]); slots = atol(words[6]);
    page = atol(words[7]); rounds = atol(words[8]);
    file = open(words[1], O_RDONLY);
    memory = mmap(NULL, slots * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (file < 0 || memory == MAP_FAILED) { perror("open"); return 1; }
#ifdef MADV_HUGEPAGE
    if (atol(words[9])) madvise(memory, slots * size, MADV_HUGEPAGE);
#endif
    for (long at = 0; at < slots * size; at += 4096) memory[at] = 1; /* every page of the system: a fault is no read */
    struct timespec from, to, spent, used;
    pthread_t all[64];
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (long t = 0; t < threads; t++) pthread_create(&all[t], NULL, work, NULL);
    for (long t = 0; t < threads; t++) pthread_join(all[t], NULL);
    clock_gettime(CLOCK_MONOTONIC, &to);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    printf("%.9f %.9f\n", (to.tv_sec - from.tv_sec) + (to.tv_nsec - from.tv_nsec) / 1e9,
           (used.tv_sec - spent.tv_sec) + (used.tv_nsec - spent.tv_nsec) / 1e9);
    return 0;
}
