/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "cli/client.h"
#include "cli/output.h"
#include "cli/explain_show.h"
#include "cli/watch_view.h"

#define REFRESH_MS 1000
#define FILTER_BYTES 64

typedef struct watch {
    client *client;
    watch_rows rows;
    watch_screen screen;
    char filter[FILTER_BYTES];
    bool over, explaining;
} watch;

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

/* ---- what is there ---- */

static bool take_row(void *context, yyjson_val *item)
{
    watch *w = context;
    client *c = w->client;
    return vec_push(&w->rows, (watch_row){.deployment = json_at(c, item, "/change"),
                                          .environment = json_at(c, item, "/environment"),
                                          .resource = json_at(c, item, "/target"),
                                          .state = json_at(c, item, "/state"),
                                          .current = json_at(c, item, "/current"),
                                          .wanted = json_at(c, item, "/wanted"),
                                          .why = json_at(c, item, "/reasons/0/message")});
}

static exit_status refresh(watch *w)
{
    w->rows.len = 0;
    client_forget(w->client);
    return client_list(w->client, STR("/api/v1/targets"), 0, take_row, w);
}

/* ---- the terminal ---- */

static void draw(watch *w)
{
    struct winsize size = {.ws_row = 24, .ws_col = OUTPUT_COLUMNS};
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    w->screen.lines = size.ws_row > 0 ? size.ws_row : 24;
    w->screen.columns = size.ws_col > 0 ? size.ws_col : OUTPUT_COLUMNS;
    w->screen.filter = str_of(w->filter);
    buf out = BUF(LIMIT_TEXT_BYTES);
    buf_addz(&out, "\033[H\033[2J");
    watch_draw(&out, &w->rows, &w->screen);
    output_buf(stdout, &out);
    fflush(stdout);
}

static void explain(watch *w)
{
    const watch_row *row = watch_chosen(&w->rows, &w->screen);
    if (!row)
        return;
    buf out = BUF(LIMIT_TEXT_BYTES);
    str path = client_path(w->client, "/api/v1/targets/%s/%s/%s", row->deployment, row->environment,
                           row->resource);
    client_answer answer;
    client_try(w->client, "GET", path, (str){NULL, 0}, &answer);
    buf_addz(&out, "\033[H\033[2J");
    if (answer.json)
        explain_text(&out, answer.json);
    buf_addz(&out, "\nany key goes back");
    output_buf(stdout, &out);
    fflush(stdout);
    w->explaining = true;
}

static void type_filter(watch *w, char key)
{
    size_t len = strlen(w->filter);
    if (key == '\n' || key == '\r' || key == 27)
        w->screen.typing = false;
    else if ((key == 127 || key == 8) && len > 0)
        w->filter[len - 1] = 0;
    else if (key >= ' ' && key != 127 && len + 1 < FILTER_BYTES) {
        w->filter[len] = key;
        w->filter[len + 1] = 0;
    }
}

/* One key: a byte, or an escape sequence as terminals send it in one piece. */
static void press(watch *w, str keys)
{
    char key = keys.ptr[0];
    bool up = str_eq(keys, STR("\033[A")) || key == 'k';
    bool down = str_eq(keys, STR("\033[B")) || key == 'j';
    if (w->explaining) {
        w->explaining = false;
    } else if (w->screen.typing) {
        type_filter(w, key);
    } else if (up && w->screen.cursor > 0) {
        w->screen.cursor--;
    } else if (down) {
        w->screen.cursor++; /* drawing puts it back from behind the end */
    } else if (key == '/') {
        w->filter[0] = 0;
        w->screen.typing = true;
    } else if (key == '\n' || key == '\r') {
        explain(w);
    } else if (key == 'q' || (key == 27 && keys.len == 1)) {
        w->over = true;
    }
    if (!w->over && !w->explaining)
        draw(w);
}

static exit_status run_screen(watch *w)
{
    struct termios before, raw;
    char keys[16];
    exit_status status = STATUS_DONE;
    tcgetattr(STDIN_FILENO, &before);
    raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    fputs("\033[?1049h\033[?25l", stdout);
    while (status == STATUS_DONE && !w->over && !stopped) {
        struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
        int ready = poll(&p, 1, REFRESH_MS);
        ssize_t len = ready > 0 ? read(STDIN_FILENO, keys, sizeof keys) : 0;
        for (ssize_t i = 0, step; i < len && !w->over; i += step) {
            step = len - i > 2 && keys[i] == 27 && keys[i + 1] == '[' ? 3 : 1;
            press(w, (str){keys + i, (size_t)step});
        }
        if (len > 0)
            continue;
        if (ready > 0)
            break; /* the terminal is gone */
        else if ((status = refresh(w)) == STATUS_DONE && !w->explaining)
            draw(w);
    }
    fputs("\033[?25h\033[?1049l", stdout);
    fflush(stdout);
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
    return status;
}

/* ---- without a terminal ---- */

static exit_status run_lines(watch *w, bool once)
{
    exit_status status = STATUS_DONE;
    buf last = BUF(LIMIT_TEXT_BYTES);
    while (status == STATUS_DONE && !stopped) {
        buf line = BUF(LIMIT_TEXT_BYTES);
        watch_line(&line, &w->rows);
        if (!str_eq(buf_str(&line), buf_str(&last))) {
            buf_clear(&last);
            buf_add(&last, buf_str(&line));
            output_text(stdout, buf_str(&line));
            fflush(stdout);
        }
        buf_done(&line);
        if (once || ferror(stdout))
            break;
        usleep(REFRESH_MS * 1000);
        status = refresh(w);
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
    watch w = {.client = c, .screen = {.colour = output_colour(stdout)}};
    str filter = options_text(given, "filter", "");
    snprintf(w.filter, sizeof w.filter, "%.*s", STR_ARG(filter));
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    status = refresh(&w);
    bool once = options_given(given, "once");
    bool terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && !once;
    if (status == STATUS_DONE && terminal)
        draw(&w);
    if (status == STATUS_DONE)
        status = terminal ? run_screen(&w) : run_lines(&w, once);
    vec_done(&w.rows);
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
        "On a terminal: a bar for each deployment and environment, and below what runs, failed "
        "or waits, and why. Up and down move, enter explains, / filters, q quits. Elsewhere: a "
        "line whenever something changed.",
    .options = options_of_watch,
    .run = run,
};
