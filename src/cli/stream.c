/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/stream.h"

#include <curl/curl.h>

#include "base/mem.h"
#include "base/num.h"

#define AGAIN_MS 1000
#define LINE_BYTES_KEPT 64u /* the longest "id: NUMBER" is shorter */

struct stream {
    client *client;
    CURLM *multi;
    CURL *easy; /* NULL: not connected */
    struct curl_slist *headers;
    int64_t sequence;
    int64_t again_ms; /* when it is tried again */
    char line[LINE_BYTES_KEPT];
    size_t len;
    bool changed, lost;
};

int64_t stream_clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void end_line(stream *s)
{
    str line = {s->line, s->len};
    int64_t number;
    if (str_starts(line, STR("id: ")) && num_parse(str_part(line, 4, SIZE_MAX), &number)) {
        s->sequence = number;
        s->changed = true;
    }
    s->len = 0;
}

/* Only the beginning of a line is kept: data may be long and is not looked at. */
static size_t take(char *bytes, size_t size, size_t count, void *context)
{
    stream *s = context;
    long status = 0;
    curl_easy_getinfo(s->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status >= 300)
        return 0;
    s->lost = false;
    for (size_t i = 0; i < size * count; i++) {
        if (bytes[i] == '\n')
            end_line(s);
        else if (s->len < LINE_BYTES_KEPT)
            s->line[s->len++] = bytes[i];
    }
    return size * count;
}

/* Once it listens: what happened before is not told, so it counts as news. */
static size_t take_header(char *bytes, size_t size, size_t count, void *context)
{
    stream *s = context;
    long status = 0;
    curl_easy_getinfo(s->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status == 200 && str_trim((str){bytes, size * count}).len == 0) {
        s->lost = false;
        s->changed = true;
    }
    return size * count;
}

static void disconnect(stream *s)
{
    if (s->easy) {
        curl_multi_remove_handle(s->multi, s->easy);
        curl_easy_cleanup(s->easy);
    }
    curl_slist_free_all(s->headers);
    s->easy = NULL;
    s->headers = NULL;
    s->len = 0;
}

static void connect_again(stream *s)
{
    char path[64] = "/api/v1/events";
    if (s->sequence > 0)
        snprintf(path, sizeof path, "/api/v1/events?after=%lld", (long long)s->sequence);
    s->easy = curl_easy_init();
    if (!s->easy)
        return;
    s->headers = client_prepare(s->client, s->easy, str_of(path));
    curl_easy_setopt(s->easy, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(s->easy, CURLOPT_WRITEDATA, s);
    curl_easy_setopt(s->easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(s->easy, CURLOPT_HEADERDATA, s);
    curl_multi_add_handle(s->multi, s->easy);
}

stream *stream_open(client *c)
{
    stream *s = mem_zalloc(sizeof *s);
    if (!s)
        return NULL;
    s->client = c;
    s->multi = curl_multi_init();
    if (!s->multi)
        return mem_free(s);
    connect_again(s);
    return s;
}

stream *stream_close(stream *s)
{
    if (!s)
        return NULL;
    disconnect(s);
    curl_multi_cleanup(s->multi);
    return mem_free(s);
}

void stream_cleanup(stream **s)
{
    *s = stream_close(*s);
}

static void look_for_the_end(stream *s)
{
    int left;
    for (CURLMsg *m = curl_multi_info_read(s->multi, &left); m;
         m = curl_multi_info_read(s->multi, &left)) {
        if (m->msg != CURLMSG_DONE)
            continue;
        disconnect(s);
        s->lost = true;
        s->again_ms = stream_clock_ms() + AGAIN_MS;
        return;
    }
}

stream_news stream_wait(stream *s, int other, int timeout_ms)
{
    struct curl_waitfd more = {.fd = other, .events = CURL_WAIT_POLLIN};
    int running;
    if (!s->easy && stream_clock_ms() >= s->again_ms)
        connect_again(s);
    if (!s->easy && timeout_ms > AGAIN_MS)
        timeout_ms = AGAIN_MS;
    curl_multi_perform(s->multi, &running);
    if (!s->changed)
        curl_multi_poll(s->multi, &more, other >= 0 ? 1 : 0, timeout_ms, NULL);
    else if (other >= 0)
        curl_multi_poll(s->multi, &more, 1, 0, NULL);
    curl_multi_perform(s->multi, &running);
    look_for_the_end(s);
    stream_news news = {.changed = s->changed, .input = more.revents != 0, .lost = s->lost};
    s->changed = false;
    return news;
}

int64_t stream_sequence(const stream *s)
{
    return s->sequence;
}
