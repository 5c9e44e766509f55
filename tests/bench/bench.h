/* SPDX-License-Identifier: Apache-2.0 */
/* bench.h - what the benchmarks share.
 *
 * A benchmark is a program bench-NAME that prints rows: name, value, unit and goal, with tabs
 * between them. A goal is ">= 20", "<= 1.5" or "-" for none; scripts/run-bench compares.
 *
 *     static void work(void *context, uint64_t count) { for (...) bench_keep(match(...)); }
 *
 *     bench_row("selector matches", bench_rate(work, &c, 1000000) / 1e6, "M/s", ">= 20");
 */
#ifndef DROVER_TESTS_BENCH_BENCH_H
#define DROVER_TESTS_BENCH_BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <sys/resource.h>

/* The best of so many runs: the others were disturbed. */
#define BENCH_RUNS 7

/* Time of this program and of the ones it ran, on whatever cores: what else the machine does counts
 * little. Everything that is measured here keeps one core busy and waits for nothing. */
static inline double bench_seconds(void)
{
    struct timespec own;
    struct rusage others;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
    getrusage(RUSAGE_CHILDREN, &others);
    return (double)own.tv_sec + (double)own.tv_nsec / 1e9 + (double)others.ru_utime.tv_sec +
           (double)others.ru_utime.tv_usec / 1e6 + (double)others.ru_stime.tv_sec +
           (double)others.ru_stime.tv_usec / 1e6;
}

/* Makes the compiler believe that a value is used, so that the work is not left out. */
#define bench_keep(value) __asm__ volatile("" : : "g"(value) : "memory")

/* Does something count times. */
typedef void bench_work(void *context, uint64_t count);

/* Seconds that the fastest of BENCH_RUNS runs took, after one that warms the caches. */
static inline double bench_best(bench_work *work, void *context, uint64_t count)
{
    work(context, count);
    double best = 0;
    for (int run = 0; run < BENCH_RUNS; run++) {
        double start = bench_seconds();
        work(context, count);
        double seconds = bench_seconds() - start;
        if (run == 0 || seconds < best)
            best = seconds;
    }
    return best;
}

/* How often a second. */
static inline double bench_rate(bench_work *work, void *context, uint64_t count)
{
    return (double)count / bench_best(work, context, count);
}

static inline void bench_row(const char *name, double value, const char *unit, const char *goal)
{
    printf("%s\t%.3f\t%s\t%s\n", name, value, unit, goal);
    fflush(stdout);
}

#endif
