/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/num.h"
#include "cli/client.h"
#include "cli/explain_show.h"
#include "cli/output.h"
#include "cli/stream.h"
#include "cli/watch_view.h"

#define REST_MS 250       /* between two looks, and more if a look takes long */
#define LOOK_MS_MAX 10000 /* without news: times that pass change reasons */
#define FILTER_BYTES 64
#define TITLE_BYTES 64
#define PAGE_ROWS 10
#define NAME_BYTES 256

typedef struct watch {
    client *client;
    stream *stream;
    watch_fleet fleet;
    watch_screen screen;
    char filter[FILTER_BYTES];
    char title[TITLE_BYTES];
    char explained[3][NAME_BYTES]; /* deployment, environment, resource */
    char chosen[3][NAME_BYTES];    /* what the cursor stays on, whatever moves around it */
    int64_t looked_ms, look_took_ms;
    size_t scrolled; /* lines of the explanation that are above the screen */
    bool over, explaining;
    bool longer; /* the explanation, than the screen */
} watch;

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

/* Only so that waiting is interrupted. */
static void on_resize(int number)
{
    (void)number;
}

/* ---- what is there ---- */

static bool take_row(void *context, yyjson_val *item)
{
    watch *w = context;
    client *c = w->client;
    return vec_push(&w->fleet.rows, (watch_row){.deployment = json_at(c, item, "/change"),
                                                .environment = json_at(c, item, "/environment"),
                                                .resource = json_at(c, item, "/target"),
                                                .state = json_at(c, item, "/state"),
                                                .current = json_at(c, item, "/current"),
                                                .wanted = json_at(c, item, "/wanted"),
                                                .why = json_at(c, item, "/reasons/0/message")});
}

static bool take_group(void *context, yyjson_val *item)
{
    watch *w = context;
    client *c = w->client;
    return vec_push(&w->fleet.groups,
                    (watch_group){.kind = json_at(c, item, "/kind"),
                                  .name = json_at(c, item, "/name"),
                                  .holders = yyjson_get_sint(yyjson_obj_get(item, "holders")),
                                  .limit = yyjson_get_sint(yyjson_obj_get(item, "limit"))});
}

static void keep_names(char out[3][NAME_BYTES], const watch_row *row)
{
    const str parts[] = {row->deployment, row->environment, row->resource};
    for (size_t i = 0; i < 3; i++)
        snprintf(out[i], NAME_BYTES, "%.*s", STR_ARG(parts[i]));
}

static exit_status look(watch *w)
{
    int64_t start = stream_clock_ms();
    const watch_row *on = watch_chosen(&w->fleet, &w->screen);
    if (on)
        keep_names(w->chosen, on);
    w->fleet.rows.len = w->fleet.groups.len = 0;
    client_forget(w->client);
    exit_status status = client_list(w->client, STR("/api/v1/targets"), 0, take_row, w);
    if (status == STATUS_DONE)
        status = client_list(w->client, STR("/api/v1/groups"), 0, take_group, w);
    w->looked_ms = stream_clock_ms();
    w->look_took_ms = w->looked_ms - start;
    if (w->screen.cursor > 0) /* else it is the first one that is looked at, whoever that is */
        watch_follow(&w->fleet, &w->screen,
                     &(watch_row){.deployment = str_of(w->chosen[0]),
                                  .environment = str_of(w->chosen[1]),
                                  .resource = str_of(w->chosen[2])});
    return status;
}

/* ---- the terminal ---- */

/* Line by line over what is there, so that nothing flickers. */
static void put_screen(buf *text)
{
    buf out = BUF(LIMIT_TEXT_BYTES);
    str rest = buf_str(text);
    buf_addz(&out, "\033[H");
    while (rest.ptr && rest.len > 0) {
        buf_add(&out, str_cut(&rest, '\n'));
        buf_addz(&out, rest.ptr ? "\033[K\r\n" : "\033[K");
    }
    buf_addz(&out, "\033[J");
    buf_done(text);
    output_buf(stdout, &out);
    fflush(stdout);
}

static void draw(watch *w)
{
    struct winsize size = {.ws_row = 24, .ws_col = OUTPUT_COLUMNS};
    time_t now = time(NULL);
    struct tm clock;
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    localtime_r(&now, &clock);
    strftime(w->title, sizeof w->title, "drover  %H:%M:%S", &clock);
    w->screen.lines = size.ws_row > 0 ? size.ws_row : 24;
    w->screen.columns = size.ws_col > 0 ? size.ws_col : OUTPUT_COLUMNS;
    w->screen.title = str_of(w->title);
    w->screen.filter = str_of(w->filter);
    buf out = BUF(LIMIT_TEXT_BYTES);
    watch_draw(&out, &w->fleet, &w->screen);
    put_screen(&out);
}

static void choose(watch *w)
{
    const watch_row *row = watch_chosen(&w->fleet, &w->screen);
    if (!row)
        return;
    keep_names(w->explained, row);
    w->explaining = true;
    w->scrolled = 0;
}

/* As much of it as the screen has room for above the last line, from a line on that is moved to
 * where something follows. False if there is room for all of it. */
static bool fit(buf *text, size_t lines, size_t *from)
{
    size_t room = lines > 4 ? lines - 4 : 1; /* "...", an empty line, the last one, the cursor's */
    size_t count = 0;
    for (size_t i = 0; i < text->len; i++)
        count += text->ptr[i] == '\n';
    size_t last = count > room ? count - room : 0;
    *from = *from < last ? *from : last;
    if (last == 0)
        return false;
    buf part = BUF(LIMIT_TEXT_BYTES);
    str rest = buf_str(text);
    for (size_t i = 0; i < *from + room; i++) {
        str line = str_cut(&rest, '\n');
        if (i >= *from)
            buf_addf(&part, "%.*s\n", STR_ARG(line));
    }
    buf_addz(&part, *from < last ? "...\n" : "");
    buf_done(text);
    *text = part;
    return true;
}

static void draw_explanation(watch *w)
{
    buf out = BUF(LIMIT_TEXT_BYTES);
    client_answer answer;
    str path = client_path(w->client, "/api/v1/targets/%s/%s/%s", str_of(w->explained[0]),
                           str_of(w->explained[1]), str_of(w->explained[2]));
    client_try(w->client, "GET", path, (str){NULL, 0}, &answer);
    if (answer.json && answer.status == 200)
        explain_text(&out, answer.json);
    else
        buf_addz(&out, answer.status == 404 ? "it is there no longer\n"
                                            : "the server cannot be reached; trying again\n");
    w->longer = fit(&out, w->screen.lines, &w->scrolled);
    buf_addz(&out,
             w->longer ? "\nup and down move, any other key goes back" : "\nany key goes back");
    put_screen(&out);
}

static void show(watch *w)
{
    if (w->explaining)
        draw_explanation(w);
    else
        draw(w);
}

/* ---- keys ---- */

static void type_filter(watch *w, char key)
{
    size_t len = strlen(w->filter);
    if (key == 27)
        w->filter[0] = 0;
    if (key == '\n' || key == '\r' || key == 27)
        w->screen.typing = false;
    else if ((key == 127 || key == 8) && len > 0)
        w->filter[len - 1] = 0;
    else if (key >= ' ' && key != 127 && len + 1 < FILTER_BYTES) {
        w->filter[len] = key;
        w->filter[len + 1] = 0;
    }
}

/* How far a key moves; 0: it is no such key. */
static int64_t move_of(str keys)
{
    static const struct {
        const char *keys;
        int64_t by;
    } moves[] = {{"\033[A", -1},          {"k", -1},
                 {"\033[B", 1},           {"j", 1},
                 {"\033[5~", -PAGE_ROWS}, {"\033[6~", PAGE_ROWS},
                 {"\033[H", -INT32_MAX},  {"g", -INT32_MAX},
                 {"\033[F", INT32_MAX},   {"G", INT32_MAX}};
    for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++)
        if (str_eq(keys, str_of(moves[i].keys)))
            return moves[i].by;
    return 0;
}

static void press_explaining(watch *w, str keys)
{
    int64_t by = w->longer ? move_of(keys) : 0, to = (int64_t)w->scrolled + by;
    w->explaining = by != 0;
    w->scrolled = to > 0 ? (size_t)to : 0; /* the end is found when it is drawn */
}

static void press(watch *w, str keys)
{
    char key = keys.len == 1 ? keys.ptr[0] : 0;
    if (w->explaining) {
        press_explaining(w, keys);
    } else if (w->screen.typing) {
        type_filter(w, keys.ptr[0]);
    } else if (key == '/') {
        w->filter[0] = 0;
        w->screen.typing = true;
    } else if (key == '\n' || key == '\r') {
        choose(w);
    } else if (key == 27) {
        w->filter[0] = 0;
    } else if (key == 'q') {
        w->over = true;
    } else {
        watch_move(&w->fleet, &w->screen, move_of(keys));
    }
}

/* One key: a byte, or an escape sequence as terminals send it in one piece. */
static size_t key_length(str keys)
{
    if (keys.len < 3 || keys.ptr[0] != 27 || keys.ptr[1] != '[')
        return 1;
    size_t len = 2;
    while (len < keys.len && (keys.ptr[len] < '@' || keys.ptr[len] > '~'))
        len++;
    return len < keys.len ? len + 1 : keys.len;
}

/* False when the terminal is gone. */
static bool read_keys(watch *w)
{
    char bytes[64];
    ssize_t len = read(STDIN_FILENO, bytes, sizeof bytes);
    str keys = {bytes, len > 0 ? (size_t)len : 0};
    while (keys.len > 0 && !w->over) {
        size_t one = key_length(keys);
        press(w, str_part(keys, 0, one));
        w->screen.filter = str_of(w->filter);
        keys = str_part(keys, one, SIZE_MAX);
    }
    return len > 0;
}

/* ---- the loop ---- */

/* How long to wait for news: not long when there was some that was not looked at. */
static int patience(const watch *w, bool dirty)
{
    int64_t rest = w->look_took_ms * 4 > REST_MS ? w->look_took_ms * 4 : REST_MS;
    int64_t due = w->looked_ms + (dirty ? rest : LOOK_MS_MAX) - stream_clock_ms();
    return due < 0 ? 0 : (int)due;
}

static exit_status run_screen(watch *w)
{
    struct termios before, raw;
    exit_status status = STATUS_DONE;
    bool dirty = false;
    tcgetattr(STDIN_FILENO, &before);
    raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    fputs("\033[?1049h\033[?25l", stdout);
    show(w);
    while (!w->over && !stopped) {
        stream_news news = stream_wait(w->stream, STDIN_FILENO, patience(w, dirty));
        dirty = dirty || news.changed || (w->screen.lost && !news.lost);
        w->screen.lost = news.lost;
        if (news.input && !read_keys(w))
            break;
        if (!news.lost && patience(w, dirty) == 0) {
            status = look(w);
            dirty = status != STATUS_DONE;
        }
        if (!w->over)
            show(w);
    }
    fputs("\033[?25h\033[?1049l", stdout);
    fflush(stdout);
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
    return STATUS_DONE;
}

/* Without a terminal: a line whenever something is different. */
static exit_status run_lines(watch *w, bool once)
{
    exit_status status = STATUS_DONE;
    buf last = BUF(LIMIT_TEXT_BYTES);
    while (status == STATUS_DONE && !stopped) {
        buf line = BUF(LIMIT_TEXT_BYTES);
        watch_line(&line, &w->fleet);
        if (!str_eq(buf_str(&line), buf_str(&last))) {
            buf_clear(&last);
            buf_add(&last, buf_str(&line));
            output_text(stdout, buf_str(&line));
            fflush(stdout);
        }
        buf_done(&line);
        if (once || ferror(stdout))
            break;
        usleep(REST_MS * 1000);
        stream_wait(w->stream, -1, LOOK_MS_MAX);
        if (!stopped)
            status = look(w);
    }
    buf_done(&last);
    return status;
}

static exit_status run(const options *given)
{
    exit_status status = STATUS_DONE;
    scoped(client_cleanup) client *c = client_open(given, &status);
    if (!c)
        return status;
    watch w = {.client = c, .stream = stream_open(c), .screen = {.colour = output_colour(stdout)}};
    if (!w.stream)
        return fail("memory ran out");
    str filter = options_text(given, "filter", "");
    snprintf(w.filter, sizeof w.filter, "%.*s", STR_ARG(filter));
    struct sigaction stop = {.sa_handler = on_signal}, resize = {.sa_handler = on_resize};
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGWINCH, &resize, NULL);
    status = look(&w);
    bool once = options_given(given, "once");
    bool terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && !once;
    if (status == STATUS_DONE)
        status = terminal ? run_screen(&w) : run_lines(&w, once);
    stream_close(w.stream);
    vec_done(&w.fleet.rows);
    vec_done(&w.fleet.groups);
    return status;
}

static const option options_of_watch[] = {
    {.name = "filter", .argument = "TEXT", .help = "only what has this in a name, state or reason"},
    {.name = "once", .help = "print how it is now, in a line, and end"},
    OPTIONS_SERVER,
    OPTIONS_END,
};

const verb cmd_watch = {
    .name = "watch",
    .summary = "look at rollouts as they go on",
    .about =
        "On a terminal, live: a bar for each deployment and environment and for each group with a "
        "limit, and below what runs, failed or waits, and why. Up and down (or j and k), page up "
        "and down, home and end move; enter explains the target: there the same keys move in what "
        "is longer than the screen, any other goes back; / filters, escape takes the filter away; "
        "q quits. Elsewhere: a line whenever something changed.",
    .options = options_of_watch,
    .run = run,
};
