/* The loop of axplore.worlds.stepping.visit in C, for comparison; see stepping.py. */

#include <stdint.h>

typedef int64_t i64;
typedef uint64_t u64;

static inline u64 rotated(u64 word, int bits) { return (word << bits) | (word >> (64 - bits)); }

static inline u64 next_word(u64 *s) {
    u64 word = rotated(s[0] + s[3], 23) + s[0];
    u64 shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotated(s[3], 45);
    return word;
}

/* Returns the steps taken; `end` receives the position, the visits made and the cut journeys. */
i64 visit(u64 initial, const u64 *state_pairs, const u64 *row_offsets, const u64 *successors, const double *thresholds,
          const u64 *aliases, u64 *numbers, u64 *discovered, i64 *pair_draws, i64 *pair_places, i64 *entry_counts,
          i64 *entry_first_draws, u64 *pairs, u64 *entries, i64 *totals, const u64 *stream, const i64 *policy,
          u64 planned, u64 target, u64 action, i64 times, i64 max_journey, i64 max_cuts, u64 state, i64 *end) {
    u64 s[4] = {stream[0], stream[1], stream[2], stream[3]};
    const u64 target_pair = state_pairs[target] + action;
    i64 steps = 0, completed = 0, journey = 0, cuts = 0, cuts_in_a_row = 0;
    while (completed < times && cuts_in_a_row < max_cuts) {
        u64 pair;
        steps++;
        if (state == target) {
            pair = target_pair;
            completed++;
            journey = cuts_in_a_row = 0;
        } else if (journey == max_journey) {
            state = initial;
            journey = 0;
            cuts++;
            cuts_in_a_row++;
            continue;
        } else {
            u64 number = numbers[state];
            journey++;
            if (number >= planned || policy[number] < 0) {
                state = initial;
                continue;
            }
            pair = state_pairs[state] + (u64)policy[number];
        }
        u64 entry = row_offsets[pair];
        u64 width = row_offsets[pair + 1] - entry;
        if (width > 1) {
            double place = (double)(i64)(next_word(s) >> 11) * 0x1p-53 * (double)(i64)width;
            i64 column = (i64)place;
            entry += (u64)column;
            if (!(place - (double)column < thresholds[entry])) entry = aliases[entry];
        }
        state = successors[entry];
        pair_draws[pair]++;
        if (++entry_counts[entry] == 1) {
            if (pair_draws[pair] == 1) {
                pairs[totals[0]] = pair;
                pair_places[pair] = totals[0]++;
            }
            entries[totals[1]++] = entry;
            entry_first_draws[entry] = pair_draws[pair];
            if (numbers[state] == UINT64_MAX) {
                numbers[state] = (u64)totals[2];
                discovered[totals[2]++] = state;
            }
        }
    }
    end[0] = (i64)state;
    end[1] = completed;
    end[2] = cuts;
    return steps;
}
