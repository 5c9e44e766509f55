/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping up with one kind of objects, against a server that is made up: each test is a
 * conversation. */
#include "kube/list_watch.h"

#include "base/mem.h"
#include "support/check.h"

#define OBJECTS_MAX 8

typedef struct talk {
    list_watch *watch;
    buf told; /* what the sink was told, in order */
    int64_t now_ms;
    bool no_memory;
} talk;

static bool seen(void *context, yyjson_val *object)
{
    talk *t = context;
    yyjson_val *metadata = yyjson_obj_get(object, "metadata");
    const char *space = yyjson_get_str(yyjson_obj_get(metadata, "namespace"));
    if (watch_row_cell(object, 0).len > 0)
        buf_addf(&t->told, "row:%.*s:", STR_ARG(watch_row_cell(object, 1)));
    buf_addf(&t->told, "%s%s%s@%s ", space ? space : "", space ? "/" : "",
             watch_row_cell(object, 0).len > 0 ? watch_row_cell(object, 0).ptr
                                               : yyjson_get_str(yyjson_obj_get(metadata, "name")),
             yyjson_get_str(yyjson_obj_get(metadata, "resourceVersion")));
    return !t->no_memory;
}

static void gone(void *context, str space, str name)
{
    talk *t = context;
    buf_addf(&t->told, "-%.*s%s%.*s ", STR_ARG(space), space.len > 0 ? "/" : "", STR_ARG(name));
}

static void synced(void *context)
{
    talk *t = context;
    buf_addz(&t->told, "synced ");
}

static void set_back(void *context)
{
    talk *t = context;
    buf_addz(&t->told, "setBack ");
}

static void begin(talk *t)
{
    *t = (talk){.told = BUF(1 << 20), .now_ms = 1000000};
    t->watch = list_watch_new(STR("/api/v1/nodes"), (watch_sink){t, seen, gone, synced, set_back});
    assert_non_null(t->watch);
}

static void end(talk *t)
{
    list_watch_free(t->watch);
    buf_done(&t->told);
}

/* The next request, waiting as long as it says; its query is checked for a part. */
static void expect(talk *t, const char *part)
{
    watch_ask ask = {0};
    watch_ask_kind kind = list_watch_next(t->watch, t->now_ms, &ask);
    if (kind == ASK_WAIT) {
        t->now_ms = ask.at_ms;
        kind = list_watch_next(t->watch, t->now_ms, &ask);
    }
    assert_int_equal(kind, ASK_SEND);
    if (str_find(ask.path, str_of(part)) == SIZE_MAX)
        fail_msg("expected %s in %.*s", part, STR_ARG(ask.path));
}

/* How long the next request waits. */
static int64_t pause_ms(talk *t)
{
    watch_ask ask = {0};
    watch_ask_kind kind = list_watch_next(t->watch, t->now_ms, &ask);
    assert_int_equal(kind, ASK_WAIT);
    return ask.at_ms - t->now_ms;
}

static void answer(talk *t, int status, const char *body, bool whole)
{
    list_watch_status(t->watch, status, 0, t->now_ms);
    list_watch_bytes(t->watch, str_of(body), t->now_ms);
    list_watch_end(t->watch, whole, t->now_ms);
}

static void told(talk *t, const char *expected)
{
    check_text(buf_str(&t->told), expected);
    buf_clear(&t->told);
}

#define OBJECT(name, version)                                                                      \
    "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version "\"}}"
#define ADDED(name, version) "{\"type\":\"ADDED\",\"object\":" OBJECT(name, version) "}\n"
#define MODIFIED(name, version) "{\"type\":\"MODIFIED\",\"object\":" OBJECT(name, version) "}\n"
#define DELETED(name, version) "{\"type\":\"DELETED\",\"object\":" OBJECT(name, version) "}\n"
#define BOOKMARK(version)                                                                          \
    "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"" version "\"}}}\n"
#define LISTED(version)                                                                            \
    "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"" version              \
    "\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}\n"
#define EXPIRED                                                                                    \
    "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"message\":\"too old\"}}\n"
#define PAGE(version, next, items)                                                                 \
    "{\"metadata\":{\"resourceVersion\":\"" version "\",\"continue\":\"" next                      \
    "\"},\"items\":[" items "]}"

static void test_streamed_list(void **state)
{
    (void)state;
    talk t;
    begin(&t);
    expect(&t, "sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
    list_watch_status(t.watch, 200, 0, t.now_ms);
    list_watch_bytes(t.watch, STR(ADDED("a", "5") ADDED("b", "3")), t.now_ms);
    assert_false(list_watch_synced(t.watch));
    list_watch_bytes(t.watch, STR(LISTED("9")), t.now_ms);
    assert_true(list_watch_synced(t.watch));
    /* The same request goes on with changes. */
    list_watch_bytes(t.watch, STR(MODIFIED("a", "10") DELETED("b", "11")), t.now_ms);
    told(&t, "a@5 b@3 synced a@10 -b ");
    list_watch_end(t.watch, true, t.now_ms + 300000);
    t.now_ms += 300000;
    expect(&t, "resourceVersion=11&");
    end(&t);
}

static void test_pages_when_streams_are_refused(void **state)
{
    (void)state;
    talk t;
    begin(&t);
    expect(&t, "sendInitialEvents");
    answer(&t, 422, "{\"message\":\"sendInitialEvents is forbidden\"}", true);
    expect(&t, "?limit=500");
    answer(&t, 200, PAGE("7", "c/1==", OBJECT("a", "1")), true);
    expect(&t, "limit=500&continue=c%2F1%3D%3D");
    answer(&t, 200, PAGE("7", "", OBJECT("b", "2")), true);
    told(&t, "a@1 b@2 synced ");
    expect(&t, "watch=1&allowWatchBookmarks=true&resourceVersion=7&");
    /* Once refused, streams are not tried again. */
    answer(&t, 410, "{\"message\":\"too old\"}", true);
    expect(&t, "?limit=500");
    end(&t);
}

static void test_list_that_expires_between_pages(void **state)
{
    (void)state;
    talk t;
    begin(&t);
    expect(&t, "sendInitialEvents");
    answer(&t, 400, "", true);
    expect(&t, "?limit=500");
    answer(&t, 200, PAGE("7", "next", OBJECT("a", "1") "," OBJECT("b", "1")), true);
    expect(&t, "continue=next");
    answer(&t, 410, "{\"message\":\"expired\"}", true);
    expect(&t, "?limit=500");
    answer(&t, 200, PAGE("8", "", OBJECT("b", "1")), true);
    told(&t, "a@1 b@1 b@1 -a synced ");
    end(&t);
}

static void list_two(talk *t)
{
    begin(t);
    expect(t, "sendInitialEvents");
    list_watch_status(t->watch, 200, 0, t->now_ms);
    list_watch_bytes(t->watch, STR(ADDED("a", "1") ADDED("b", "2") LISTED("3")), t->now_ms);
    told(t, "a@1 b@2 synced ");
}

static void test_cut_goes_on_where_it_was(void **state)
{
    (void)state;
    talk t;
    list_two(&t);
    list_watch_bytes(t.watch, STR(BOOKMARK("40") "{\"type\":\"MOD"), t.now_ms);
    list_watch_end(t.watch, false, t.now_ms);
    check_text(list_watch_problem(t.watch), "/api/v1/nodes: the connection was cut");
    expect(&t, "resourceVersion=40&");
    answer(&t, 200, MODIFIED("a", "41"), true);
    told(&t, "a@41 ");
    end(&t);
}

static void test_cut_in_a_streamed_list(void **state)
{
    (void)state;
    talk t;
    begin(&t);
    expect(&t, "sendInitialEvents");
    answer(&t, 200, ADDED("a", "1") ADDED("old", "1"), false);
    assert_false(list_watch_synced(t.watch));
    assert_true(pause_ms(&t) > 0);
    expect(&t, "sendInitialEvents");
    answer(&t, 200, ADDED("a", "1") LISTED("3"), true);
    told(&t, "a@1 old@1 a@1 -old synced ");
    end(&t);
}

static void test_expired_watch_lists_anew(void **state)
{
    (void)state;
    talk t;
    list_two(&t);
    list_watch_bytes(t.watch, STR(EXPIRED), t.now_ms);
    list_watch_end(t.watch, true, t.now_ms);
    expect(&t, "sendInitialEvents");
    answer(&t, 200, ADDED("b", "2") ADDED("c", "8") LISTED("9"), true);
    told(&t, "b@2 c@8 -a synced ");
    assert_int_equal(list_watch_count(t.watch), 2);
    end(&t);
}

static void test_duplicates(void **state)
{
    (void)state;
    talk t;
    list_two(&t);
    list_watch_bytes(t.watch, STR(DELETED("a", "4") DELETED("a", "4") DELETED("x", "5")), t.now_ms);
    told(&t, "-a ");
    end(&t);
}

/* An event that comes again after later ones undoes none of them. */
static void test_old_events(void **state)
{
    (void)state;
    talk t;
    list_two(&t);
    list_watch_bytes(t.watch,
                     STR(MODIFIED("a", "10") DELETED("b", "11") MODIFIED("a", "10") ADDED("b", "2")
                             MODIFIED("a", "9") DELETED("a", "8") BOOKMARK("11")),
                     t.now_ms);
    told(&t, "a@10 -b ");
    list_watch_end(t.watch, false, t.now_ms);
    expect(&t, "resourceVersion=11&");
    /* Versions that are no numbers cannot be compared: they count. */
    list_watch_status(t.watch, 200, 0, t.now_ms);
    list_watch_bytes(t.watch, STR(MODIFIED("a", "x7") MODIFIED("a", "x6")), t.now_ms);
    told(&t, "a@x7 a@x6 ");
    end(&t);
}

/* A server that was set back to a backup: what it has now is what counts. */
static void test_server_that_went_back(void **state)
{
    (void)state;
    talk t;
    list_two(&t);
    list_watch_bytes(t.watch, STR(BOOKMARK("40")), t.now_ms);
    list_watch_end(t.watch, false, t.now_ms);
    expect(&t, "resourceVersion=40&");
    list_watch_status(t.watch, 200, 0, t.now_ms);
    list_watch_bytes(t.watch, STR(MODIFIED("a", "21") BOOKMARK("22")), t.now_ms);
    check_text(list_watch_problem(t.watch),
               "/api/v1/nodes: the server is behind what it told before");
    list_watch_end(t.watch, false, t.now_ms);
    expect(&t, "sendInitialEvents");
    list_watch_status(t.watch, 200, 0, t.now_ms);
    list_watch_bytes(t.watch, STR(ADDED("a", "21") LISTED("22") MODIFIED("a", "23")), t.now_ms);
    told(&t, "a@21 setBack -b synced a@23 ");
    /* From then on it counts from there. */
    list_watch_bytes(t.watch, STR(EXPIRED), t.now_ms);
    list_watch_end(t.watch, false, t.now_ms);
    expect(&t, "sendInitialEvents");
    list_watch_status(t.watch, 200, 0, t.now_ms);
    list_watch_bytes(t.watch, STR(ADDED("a", "23") LISTED("23")), t.now_ms);
    told(&t, "a@23 synced ");
    end(&t);
}

/* The same where lists come in pages, and the watch was refused at once. */
static void test_pages_that_went_back(void **state)
{
    (void)state;
    talk t;
    begin(&t);
    expect(&t, "sendInitialEvents");
    answer(&t, 422, "{}", true);
    expect(&t, "limit=");
    answer(&t, 200, PAGE("50", "", OBJECT("a", "20")), true);
    expect(&t, "resourceVersion=50&");
    answer(&t, 410, "{}", true);
    expect(&t, "limit=");
    answer(&t, 200, PAGE("30", "", OBJECT("a", "20")), true);
    told(&t, "a@20 synced a@20 setBack synced ");
    end(&t);
}

/* ---- a server that does what the proxy of the cluster tests does ---- */

#define WORLD_OBJECTS 5
#define WORLD_EVENTS 400

typedef struct world {
    talk talk;
    rng random;
    int changed[WORLD_OBJECTS];       /* version of the last change; deleted if negative */
    int history[WORLD_EVENTS + 1][2]; /* version: object, and whether it was deleted */
    int version, told_until;          /* of the server; of the watch that runs */
    bool runs;
} world;

static void world_send(world *w, const char *type, int object, int version)
{
    char line[256];
    snprintf(line, sizeof line,
             "{\"type\":\"%s\",\"object\":{\"metadata\":{\"name\":\"o%d\","
             "\"resourceVersion\":\"%d\"}}}\n",
             type, object, version);
    list_watch_bytes(w->talk.watch, str_of(line), w->talk.now_ms);
}

static void world_list(world *w, bool whole)
{
    for (int i = 0; i < WORLD_OBJECTS; i++)
        if (w->changed[i] > 0)
            world_send(w, "ADDED", i, w->changed[i]);
    char end_of_list[256];
    snprintf(end_of_list, sizeof end_of_list,
             "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"%d\","
             "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}\n",
             w->version);
    if (whole)
        list_watch_bytes(w->talk.watch, str_of(end_of_list), w->talk.now_ms);
    w->told_until = w->version;
}

static void world_cut(world *w, bool whole)
{
    list_watch_end(w->talk.watch, whole, w->talk.now_ms);
    w->runs = false;
}

/* Sends the next request if it is time; faults: also those of a server in trouble. */
static void world_ask(world *w, bool faults)
{
    watch_ask ask = {0};
    watch_ask_kind kind = list_watch_next(w->talk.watch, w->talk.now_ms, &ask);
    if (kind == ASK_ABORT)
        world_cut(w, false);
    if (kind != ASK_SEND)
        return;
    w->runs = true;
    size_t luck = faults ? rng_below(&w->random, 8) : 7;
    list_watch_status(w->talk.watch, luck == 0 ? 503 : luck == 1 ? 410 : 200, 0, w->talk.now_ms);
    if (luck <= 1) {
        world_cut(w, true);
        return;
    }
    size_t at = str_find(ask.path, STR("&resourceVersion="));
    if (at == SIZE_MAX) {
        world_list(w, luck != 2);
        if (luck == 2)
            world_cut(w, false);
        return;
    }
    w->told_until = (int)strtol(ask.path.ptr + at + 17, NULL, 10);
    if (luck == 3 && w->told_until > 10)
        w->told_until -= 10; /* a server that is behind */
}

static void world_tell(world *w, bool faults)
{
    while (w->runs && w->told_until < w->version) {
        int version = ++w->told_until;
        int object = w->history[version][0];
        const char *type = w->history[version][1] ? "DELETED" : "MODIFIED";
        world_send(w, type, object, version);
        size_t luck = faults ? rng_below(&w->random, 12) : 11;
        if (luck == 0)
            world_send(w, type, object, version);
        if (luck == 1 && version > 3) /* an old one again */
            world_send(w, w->history[version - 2][1] ? "DELETED" : "MODIFIED",
                       w->history[version - 2][0], version - 2);
        if (luck == 2)
            list_watch_bytes(w->talk.watch, STR(EXPIRED), w->talk.now_ms);
        if (luck == 2 || luck == 3)
            world_cut(w, luck == 2);
        if (luck == 4)
            return; /* the rest comes later */
    }
}

static void test_any_server(void **state)
{
    (void)state;
    world w = {.random = rng_seeded(), .version = 1};
    begin(&w.talk);
    for (int i = 0; i < WORLD_EVENTS - 1; i++) {
        int object = (int)rng_below(&w.random, WORLD_OBJECTS);
        bool gone_now = w.changed[object] > 0 && rng_below(&w.random, 3) == 0;
        w.version++;
        w.history[w.version][0] = object;
        w.history[w.version][1] = gone_now;
        w.changed[object] = gone_now ? -w.version : w.version;
        for (size_t k = rng_below(&w.random, 4); k > 0; k--) {
            world_ask(&w, true);
            world_tell(&w, true);
        }
        w.talk.now_ms += (int64_t)rng_below(&w.random, 20000);
    }
    /* Faults end: what it knows is what there is. */
    size_t expected = 0;
    for (int i = 0; i < 100; i++) {
        world_ask(&w, false);
        world_tell(&w, false);
        w.talk.now_ms += 1000;
    }
    for (int i = 0; i < WORLD_OBJECTS; i++) {
        char last[32] = "", name[16];
        snprintf(name, sizeof name, "o%d", i);
        str rest = buf_str(&w.talk.told);
        while (rest.len > 0) {
            str word = str_cut(&rest, ' ');
            if (str_find(word, str_of(name)) != SIZE_MAX)
                snprintf(last, sizeof last, "%.*s", STR_ARG(word));
        }
        char want[32];
        snprintf(want, sizeof want, "%s@%d", name, w.changed[i]);
        if (w.changed[i] > 0)
            assert_string_equal(last, want);
        else
            check_msg(last[0] == '-' || last[0] == '\0', "%s is gone, not %s", name, last);
        expected += w.changed[i] > 0;
    }
    assert_int_equal(list_watch_count(w.talk.watch), expected);
    end(&w.talk);
}

static void test_pieces(void **state)
{
    (void)state;
    talk t;
    begin(&t);
    expect(&t, "sendInitialEvents");
    list_watch_status(t.watch, 200, 0, t.now_ms);
    const char text[] = ADDED("a", "1") LISTED("3") MODIFIED("a", "4");
    for (size_t i = 0; i + 1 < sizeof text; i++)
        list_watch_bytes(t.watch, (str){text + i, 1}, t.now_ms);
    told(&t, "a@1 synced a@4 ");
    end(&t);
}

static void test_stalled_watch_is_cut(void **state)
{
    (void)state;
    talk t;
    list_two(&t);
    watch_ask ask;
    assert_int_equal(list_watch_next(t.watch, t.now_ms, &ask), ASK_WAIT);
    assert_int_equal(ask.at_ms, t.now_ms + WATCH_SILENCE_MS);
    t.now_ms = ask.at_ms;
    assert_int_equal(list_watch_next(t.watch, t.now_ms, &ask), ASK_ABORT);
    list_watch_end(t.watch, false, t.now_ms);
    check_text(list_watch_problem(t.watch), "/api/v1/nodes: nothing was heard for too long");
    expect(&t, "resourceVersion=3&");
    end(&t);
}

/* A server that was set back tells of nothing until it has come to the version once more. */
static void test_watch_of_the_future(void **state)
{
    (void)state;
    talk t;
    list_two(&t);
    list_watch_end(t.watch, false, t.now_ms); /* cut: the server goes away */
    watch_ask ask;
    for (int i = 0; i < 2; i++) {
        expect(&t, "resourceVersion=3&");
        list_watch_status(t.watch, 200, 0, t.now_ms);
        if (i == 0) /* it is there and well: nothing is listed again for a pause */
            list_watch_bytes(t.watch, STR(BOOKMARK("3")), t.now_ms);
        t.now_ms += WATCH_SILENCE_MS;
        assert_int_equal(list_watch_next(t.watch, t.now_ms, &ask), ASK_ABORT);
        list_watch_end(t.watch, false, t.now_ms);
    }
    expect(&t, "sendInitialEvents");
    end(&t);
}

/* Few objects: whatever happened while nothing was heard, what exists is what counts, also on a
 * server that was set back and has come to the known version once more. */
static void test_doubt(void **state)
{
    (void)state;
    talk t;
    list_two(&t);
    list_watch_doubt(t.watch);
    list_watch_bytes(t.watch, STR(MODIFIED("a", "7")), t.now_ms);
    told(&t, "a@7 ");
    list_watch_end(t.watch, false, t.now_ms); /* cut */
    expect(&t, "sendInitialEvents");
    answer(&t, 503, "{}", true);
    expect(&t, "sendInitialEvents");
    list_watch_status(t.watch, 200, 0, t.now_ms);
    list_watch_bytes(t.watch, STR(ADDED("a", "1") LISTED("8")), t.now_ms);
    told(&t, "a@1 -b synced ");
    t.now_ms += 200000; /* ended in order, but too early: the server goes down */
    list_watch_end(t.watch, true, t.now_ms);
    expect(&t, "sendInitialEvents");
    list_watch_status(t.watch, 200, 0, t.now_ms);
    list_watch_bytes(t.watch, STR(ADDED("a", "1") LISTED("9")), t.now_ms);
    told(&t, "a@1 synced ");
    t.now_ms += 360000; /* its time is over: there was no pause in which anything could happen */
    list_watch_end(t.watch, true, t.now_ms);
    expect(&t, "resourceVersion=9&");
    list_watch_end(t.watch, false, t.now_ms); /* but here is one */
    expect(&t, "sendInitialEvents");
    end(&t);
}

static void test_back_off(void **state)
{
    (void)state;
    talk t;
    begin(&t);
    int64_t least = 0;
    for (int i = 0; i < 12; i++) {
        expect(&t, "sendInitialEvents");
        answer(&t, 503, "{\"message\":\"starting\"}", true);
        check_text(list_watch_problem(t.watch), "/api/v1/nodes: the server answers 503: starting");
        int64_t pause = pause_ms(&t);
        int64_t full = WATCH_BACKOFF_FIRST_MS << (i < 6 ? i : 6);
        full = full > WATCH_BACKOFF_MAX_MS ? WATCH_BACKOFF_MAX_MS : full;
        assert_in_range(pause, full / 2, full);
        assert_true(pause >= least / 2);
        least = pause;
    }
    expect(&t, "sendInitialEvents");
    answer(&t, 200, LISTED("3"), true);
    /* Success ends it. */
    expect(&t, "resourceVersion=3&");
    answer(&t, 503, "", true);
    assert_true(pause_ms(&t) <= WATCH_BACKOFF_FIRST_MS);
    end(&t);
}

static void test_retry_after(void **state)
{
    (void)state;
    talk t;
    begin(&t);
    expect(&t, "sendInitialEvents");
    list_watch_status(t.watch, 429, 7, t.now_ms);
    list_watch_end(t.watch, true, t.now_ms);
    assert_int_equal(pause_ms(&t), 7000);
    end(&t);
}

static void test_short_watches_are_not_asked_for_at_once(void **state)
{
    (void)state;
    talk t;
    list_two(&t);
    list_watch_end(t.watch, true, t.now_ms);
    expect(&t, "resourceVersion=3&");
    answer(&t, 200, "", true);
    assert_true(pause_ms(&t) > 0);
    expect(&t, "resourceVersion=3&");
    list_watch_status(t.watch, 200, 0, t.now_ms);
    t.now_ms += WATCH_SHORT_MS;
    list_watch_end(t.watch, true, t.now_ms);
    expect(&t, "resourceVersion=3&");
    end(&t);
}

static void test_nonsense(void **state)
{
    (void)state;
    static const char *const lines[] = {"{\"type\":\"ODD\"}\n", "nonsense\n", "[]\n",
                                        "{\"type\":\"BOOKMARK\",\"object\":{}}\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        talk t;
        list_two(&t);
        list_watch_bytes(t.watch, str_of(lines[i]), t.now_ms);
        list_watch_bytes(t.watch, STR(DELETED("a", "9")), t.now_ms); /* not looked at any more */
        /* The server goes on as if nothing was: it is cut. */
        watch_ask ask;
        assert_true(list_watch_useless(t.watch));
        assert_int_equal(list_watch_next(t.watch, t.now_ms, &ask), ASK_ABORT);
        list_watch_end(t.watch, false, t.now_ms);
        assert_true(list_watch_problem(t.watch).len > 0);
        told(&t, "");
        expect(&t, "resourceVersion=3&");
        end(&t);
    }
    talk t;
    begin(&t);
    expect(&t, "sendInitialEvents");
    answer(&t, 400, "", true);
    expect(&t, "?limit=500");
    answer(&t, 200, "{\"items\":{}}", true);
    check_text(list_watch_problem(t.watch), "/api/v1/nodes: the answer is no list");
    assert_true(pause_ms(&t) > 0);
    end(&t);
}

#define ROW(type, name, version)                                                                   \
    "{\"type\":\"" type "\",\"object\":{\"kind\":\"Table\","                                       \
    "\"metadata\":{\"resourceVersion\":\"" version "\"},\"columnDefinitions\":null,"               \
    "\"rows\":[{\"cells\":[\"" name "\",\"Running\"],\"object\":null}]}}\n"

/* What exists comes whole, changes come as rows, and the request between the two is cut. */
static void test_rows(void **state)
{
    (void)state;
    talk t = {.told = BUF(1 << 20), .now_ms = 1000000};
    watch_ask ask = {0};
    t.watch = list_watch_new(STR("/apis/batch/v1/namespaces/s/jobs"),
                             (watch_sink){&t, seen, gone, synced, set_back});
    list_watch_rows(t.watch);
    assert_int_equal(list_watch_next(t.watch, t.now_ms, &ask), ASK_SEND);
    assert_null(ask.accept);
    assert_true(str_find(ask.path, STR("includeObject")) == SIZE_MAX);
    list_watch_status(t.watch, 200, 0, t.now_ms);
    list_watch_bytes(t.watch,
                     STR("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\","
                         "\"namespace\":\"s\",\"resourceVersion\":\"5\"}}}\n"),
                     t.now_ms);
    assert_false(list_watch_useless(t.watch));
    list_watch_bytes(t.watch, STR(LISTED("9")), t.now_ms);
    assert_true(list_watch_useless(t.watch));
    assert_int_equal(list_watch_next(t.watch, t.now_ms, &ask), ASK_ABORT);
    list_watch_end(t.watch, false, t.now_ms);
    assert_int_equal(list_watch_next(t.watch, t.now_ms, &ask), ASK_SEND);
    assert_non_null(strstr(ask.accept, "as=Table"));
    assert_true(str_find(ask.path, STR("resourceVersion=9&")) != SIZE_MAX);
    assert_true(str_find(ask.path, STR("&includeObject=None")) != SIZE_MAX);
    list_watch_status(t.watch, 200, 0, t.now_ms);
    list_watch_bytes(t.watch,
                     STR(ROW("MODIFIED", "a", "10") ROW("ADDED", "b", "11")
                             ROW("DELETED", "a", "12") ROW("BOOKMARK", "", "13")),
                     t.now_ms);
    assert_false(list_watch_useless(t.watch));
    told(&t, "s/a@5 synced row:Running:a@10 row:Running:b@11 -s/a ");
    /* A list that is needed anew is whole again. */
    list_watch_bytes(t.watch, STR(EXPIRED), t.now_ms);
    list_watch_end(t.watch, false, t.now_ms);
    expect(&t, "sendInitialEvents=true");
    answer(&t, 200, LISTED("20"), false);
    told(&t, "-s/b synced ");
    expect(&t, "includeObject=None");
    end(&t);
}

static void test_event_that_is_too_large(void **state)
{
    (void)state;
    talk t;
    list_two(&t);
    static char bytes[65536];
    memset(bytes, 'x', sizeof bytes);
    for (size_t i = 0; i <= WATCH_EVENT_BYTES_MAX / sizeof bytes + 1; i++)
        list_watch_bytes(t.watch, (str){bytes, sizeof bytes}, t.now_ms);
    list_watch_end(t.watch, false, t.now_ms);
    check_text(list_watch_problem(t.watch), "/api/v1/nodes: an event is too large");
    end(&t);
}

/* Whichever allocation fails: nothing leaks, and the conversation ends with the same objects. */
static void test_allocations(void **state)
{
    (void)state;
    int64_t live = mem_live();
    for (uint64_t nth = 1;; nth++) {
        talk t = {.told = BUF(1 << 20), .now_ms = 1000000};
        mem_fail_at(nth);
        t.watch = list_watch_new(STR("/api/v1/nodes"), (watch_sink){&t, seen, gone, synced, NULL});
        bool failed = mem_failed();
        for (int i = 0; t.watch && i < OBJECTS_MAX && !list_watch_synced(t.watch); i++) {
            watch_ask ask;
            while (list_watch_next(t.watch, t.now_ms, &ask) == ASK_WAIT)
                t.now_ms = ask.at_ms;
            answer(&t, 200, ADDED("a", "1") ADDED("b", "2") LISTED("3"), true);
            failed = failed || mem_failed();
        }
        mem_fail_at(0);
        if (t.watch) {
            assert_true(list_watch_synced(t.watch));
            assert_int_equal(list_watch_count(t.watch), 2);
        }
        end(&t);
        assert_int_equal(mem_live(), live);
        if (!failed)
            break;
        assert_true(nth < 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streamed_list),
        cmocka_unit_test(test_pages_when_streams_are_refused),
        cmocka_unit_test(test_list_that_expires_between_pages),
        cmocka_unit_test(test_cut_goes_on_where_it_was),
        cmocka_unit_test(test_cut_in_a_streamed_list),
        cmocka_unit_test(test_expired_watch_lists_anew),
        cmocka_unit_test(test_duplicates),
        cmocka_unit_test(test_old_events),
        cmocka_unit_test(test_server_that_went_back),
        cmocka_unit_test(test_pages_that_went_back),
        cmocka_unit_test(test_any_server),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_stalled_watch_is_cut),
        cmocka_unit_test(test_watch_of_the_future),
        cmocka_unit_test(test_doubt),
        cmocka_unit_test(test_back_off),
        cmocka_unit_test(test_retry_after),
        cmocka_unit_test(test_short_watches_are_not_asked_for_at_once),
        cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_event_that_is_too_large),
        cmocka_unit_test(test_allocations),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
