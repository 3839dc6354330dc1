/* Counts of every run of tokens in a set of sequences, and what most often followed them: an online suffix automaton.
 *
 * workers/rollout/drafters/suffix_index.py has the same in Python and says what it computes. What takes time here is
 * waiting for memory, for every token of every text leads to a dozen states anywhere. So texts take each step together,
 * and the processor waits for many at once.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOT 0
#define NONE (-1)
#define LEAST_ROOM 16
#define PRIOR 0.5 /* as in suffix_index.py */

typedef struct {
    int32_t link, length, count;
    int32_t token, target;         /* the first follower, mostly the only one; NONE, NONE for none */
    int32_t more_edges, last_edge; /* of the others */
} State;

typedef struct {
    int32_t state, token, target, next; /* next: of the same state, in the order they came */
} Edge;

typedef struct {
    State *states;
    Edge *edges;
    int32_t *slots; /* edges by state and token, or NONE */
    int64_t num_states, num_edges, num_slots;
} Index;

static void *checked(void *memory)
{
    if (!memory) {
        fputs("No memory is left for suffix lookups: lower drafter.max_stored_tokens.\n", stderr);
        abort();
    }
    return memory;
}

/* Room for one more: it doubles at powers of two. */
static void *with_room(void *items, int64_t number, int64_t size)
{
    if (number && (number < LEAST_ROOM || number & (number - 1)))
        return items;
    return checked(realloc(items, (number < LEAST_ROOM ? LEAST_ROOM : 2 * number) * size));
}

static inline int64_t first_slot(const Index *index, int32_t state, int32_t token)
{
    uint64_t key = (uint64_t)(uint32_t)state << 32 | (uint32_t)token;
    return (int64_t)(key * 0x9E3779B97F4A7C15u >> 32) & (index->num_slots - 1);
}

static void put(Index *index, int32_t edge)
{
    int64_t at = first_slot(index, index->edges[edge].state, index->edges[edge].token);
    while (index->slots[at] != NONE)
        at = (at + 1) & (index->num_slots - 1);
    index->slots[at] = edge;
}

static void make_slots(Index *index, int64_t number)
{
    index->slots = checked(realloc(index->slots, number * sizeof *index->slots));
    index->num_slots = number;
    memset(index->slots, 0xff, number * sizeof *index->slots);
    for (int64_t edge = 0; edge < index->num_edges; edge++)
        put(index, edge);
}

/* Where a state leads with a token, to be read or changed before anything is added; NULL where it leads nowhere. */
static int32_t *target_of(const Index *index, int32_t state, int32_t token)
{
    State *from = &index->states[state];
    if (from->token == token)
        return &from->target;
    if (from->more_edges == NONE)
        return NULL;
    for (int64_t at = first_slot(index, state, token);; at = (at + 1) & (index->num_slots - 1)) {
        if (index->slots[at] == NONE)
            return NULL;
        Edge *edge = &index->edges[index->slots[at]];
        if (edge->state == state && edge->token == token)
            return &edge->target;
    }
}

static void lead(Index *index, int32_t state, int32_t token, int32_t target)
{
    State *from = &index->states[state];
    if (from->token == NONE) {
        from->token = token;
        from->target = target;
        return;
    }
    int32_t edge = index->num_edges;
    index->edges = with_room(index->edges, edge, sizeof(Edge));
    index->edges[edge] = (Edge){state, token, target, NONE};
    *(from->more_edges == NONE ? &from->more_edges : &index->edges[from->last_edge].next) = edge;
    from->last_edge = edge;
    index->num_edges++;
    if (2 * index->num_edges > index->num_slots)
        make_slots(index, 2 * index->num_slots);
    else
        put(index, edge);
}

static int32_t add_state(Index *index, int32_t link, int32_t length, int32_t count)
{
    index->states = with_room(index->states, index->num_states, sizeof(State));
    index->states[index->num_states] = (State){link, length, count, NONE, NONE, NONE, NONE};
    return index->num_states++;
}

/* The state whose longest run is this state's and the token; split off `known` where that has longer ones. */
static int32_t exactly(Index *index, int32_t state, int32_t token, int32_t known)
{
    int32_t length = index->states[state].length + 1;
    if (index->states[known].length == length)
        return known;
    int32_t split = add_state(index, index->states[known].link, length, index->states[known].count);
    State *twin = &index->states[known];
    if (twin->token != NONE)
        lead(index, split, twin->token, twin->target);
    for (int32_t edge = twin->more_edges; edge != NONE; edge = index->edges[edge].next)
        lead(index, split, index->edges[edge].token, index->edges[edge].target);
    twin->link = split;
    for (int32_t at = state; at != NONE; at = index->states[at].link) {
        int32_t *target = target_of(index, at, token);
        if (!target || *target != known)
            break;
        *target = split;
    }
    return split;
}

/* A state for a run that never occurred. */
static int32_t append(Index *index, int32_t state, int32_t token)
{
    int32_t new = add_state(index, ROOT, index->states[state].length + 1, 0);
    for (int32_t at = state; at != NONE; at = index->states[at].link) {
        int32_t *target = target_of(index, at, token);
        if (target) {
            int32_t link = exactly(index, at, token, *target);
            index->states[new].link = link;
            break;
        }
        lead(index, at, token, new);
    }
    return new;
}

/* A text and where it stands. */
typedef struct {
    Index *index;
    int32_t state;
} Place;

static inline void expect(Place place) { __builtin_prefetch(&place.index->states[place.state]); }

/* All runs at the ends of these texts occurred once more. Places are used up. */
static void count_runs(Place *places, int64_t number)
{
    while (number)
        for (int64_t i = 0; i < number;) {
            State *state = &places[i].index->states[places[i].state];
            if (places[i].state == ROOT) {
                places[i] = places[--number];
            } else {
                state->count++;
                places[i].state = state->link;
                expect(places[i++]);
            }
        }
}

/* Texts grow by their new tokens, which end at `ends`, the first of each first. */
static void grow(Index *const *indices, int64_t *states, const int64_t *new_tokens, const int64_t *ends, int64_t num_texts)
{
    Place *grown = checked(malloc((num_texts + 1) * sizeof *grown));
    for (int64_t step = 0, number = 1; number; step++) {
        number = 0;
        for (int64_t i = 0, begin = 0; i < num_texts; begin = ends[i++])
            if (begin + step < ends[i]) {
                int32_t token = new_tokens[begin + step], *target = target_of(indices[i], states[i], token);
                states[i] = target ? exactly(indices[i], states[i], token, *target) : append(indices[i], states[i], token);
                grown[number++] = (Place){indices[i], states[i]};
            }
        count_runs(grown, number);
    }
    free(grown);
}

typedef struct {
    int64_t max_tokens, min_match, max_match;
    double min_probability;
} Rule;

/* A text, how much of what followed it was found, and how probable that is. */
typedef struct {
    Place place;
    int64_t *tokens, *number;
    double probability;
} Followed;

/* Goes to the longest match, by a step. Whether it is there. */
static int is_at_match(Followed *text, const Rule *rule)
{
    const State *states = text->place.index->states, *state = &states[text->place.state];
    int is_too_long = !*text->number && state->link != NONE && states[state->link].length >= rule->max_match;
    if (text->place.state == ROOT || !(is_too_long || state->token == NONE))
        return 1;
    text->place.state = state->link;
    return 0;
}

/* Takes the token that most often followed the match. Whether there may be another one. */
static int take(Followed *text, const Rule *rule)
{
    const Index *index = text->place.index;
    const State *states = index->states, *match = &states[text->place.state];
    if (match->length < rule->min_match)
        return 0;
    int64_t best = states[match->target].count, total = best;
    int32_t token = match->token, target = match->target;
    for (int32_t edge = match->more_edges; edge != NONE; edge = index->edges[edge].next) {
        int64_t count = states[index->edges[edge].target].count;
        total += count;
        if (count > best) {
            best = count;
            token = index->edges[edge].token;
            target = index->edges[edge].target;
        }
    }
    text->probability *= best / (total + PRIOR);
    if (text->probability < rule->min_probability)
        return 0;
    text->tokens[(*text->number)++] = token;
    text->place.state = target;
    return *text->number < rule->max_tokens;
}

static void follow(Followed *texts, int64_t number, const Rule *rule)
{
    while (number)
        for (int64_t i = 0; i < number;)
            if (is_at_match(&texts[i], rule) && !take(&texts[i], rule))
                texts[i] = texts[--number];
            else
                expect(texts[i++].place);
}

/* Texts grow, all of them before the first num_followed of them are followed. drafted: [num_followed, max_tokens], zeros
 * at first. */
void suffix_look_up(Index *const *indices, int64_t *states, const int64_t *new_tokens, const int64_t *ends,
                    int64_t num_texts, int64_t num_followed, int64_t max_tokens, int64_t min_match, int64_t max_match,
                    double min_probability, int64_t *drafted, int64_t *num_drafted)
{
    Rule rule = {max_tokens, min_match, max_match, min_probability};
    for (int64_t i = 0; i < num_texts; i++)
        expect((Place){indices[i], states[i]});
    grow(indices, states, new_tokens, ends, num_texts);
    Followed *texts = checked(malloc((num_followed + 1) * sizeof *texts));
    for (int64_t i = 0; i < num_followed; i++) {
        num_drafted[i] = 0;
        texts[i] = (Followed){{indices[i], states[i]}, drafted + i * max_tokens, num_drafted + i, 1.0};
    }
    follow(texts, max_tokens > 0 ? num_followed : 0, &rule);
    free(texts);
}

int64_t suffix_count(const Index *index, const int64_t *tokens, int64_t number)
{
    int32_t state = ROOT;
    for (int64_t i = 0; i < number; i++) {
        int32_t *target = target_of(index, state, tokens[i]);
        if (!target)
            return 0;
        state = *target;
    }
    return index->states[state].count;
}

int64_t suffix_num_states(const Index *index) { return index->num_states; }

Index *suffix_new(void)
{
    Index *index = checked(calloc(1, sizeof(Index)));
    add_state(index, NONE, 0, 0);
    make_slots(index, 2 * LEAST_ROOM);
    return index;
}

static void *copied(const void *items, int64_t number, int64_t size)
{
    int64_t room = LEAST_ROOM;
    while (room <= number) /* as with_room() has made it by then */
        room *= 2;
    return memcpy(checked(malloc(room * size)), items, number * size);
}

Index *suffix_copy(const Index *index)
{
    Index *copy = checked(malloc(sizeof(Index)));
    *copy = *index;
    copy->states = copied(index->states, index->num_states, sizeof(State));
    copy->edges = copied(index->edges, index->num_edges, sizeof(Edge));
    copy->slots = copied(index->slots, index->num_slots, sizeof *index->slots);
    return copy;
}

void suffix_free(Index *index)
{
    free(index->states);
    free(index->edges);
    free(index->slots);
    free(index);
}
