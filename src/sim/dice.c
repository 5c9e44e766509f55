/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/dice.h"

#include <assert.h>

static uint64_t rotated(uint64_t x, int by)
{
    return (x << by) | (x >> (64 - by));
}

dice dice_of(uint64_t seed)
{
    dice d;
    for (int i = 0; i < 4; i++) {
        uint64_t z = seed += UINT64_C(0x9E3779B97F4A7C15);
        z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
        d.state[i] = z ^ (z >> 31);
    }
    return d;
}

uint64_t dice_next(dice *d)
{
    uint64_t *s = d->state;
    uint64_t result = rotated(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotated(s[3], 45);
    return result;
}

uint64_t dice_below(dice *d, uint64_t below)
{
    assert(below > 0);
    return (uint64_t)(((unsigned __int128)dice_next(d) * below) >> 64);
}

int64_t dice_between(dice *d, int64_t low, int64_t high)
{
    assert(low <= high);
    return low + (int64_t)dice_below(d, (uint64_t)(high - low) + 1);
}

bool dice_percent(dice *d, uint32_t percent)
{
    return dice_below(d, 100) < percent;
}
