/* SPDX-License-Identifier: Apache-2.0 */
/* dice.h - chance, from one seed.
 *
 * xoshiro256** seeded by splitmix64: the same numbers from the same seed on every machine. Nothing
 * in a simulation is random but by these dice. */
#ifndef DROVER_SIM_DICE_H
#define DROVER_SIM_DICE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct dice {
    uint64_t state[4];
} dice;

dice dice_of(uint64_t seed);
uint64_t dice_next(dice *d);
/* From 0 to below - 1; below is at least 1. */
uint64_t dice_below(dice *d, uint64_t below);
/* From low to high, both included. */
int64_t dice_between(dice *d, int64_t low, int64_t high);
/* True in so many of a hundred cases. Asks for a number even when the answer is known. */
bool dice_percent(dice *d, uint32_t percent);

#endif
