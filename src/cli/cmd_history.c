/* SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"
#include "base/mem.h"
#include "base/num.h"
#include "cli/events.h"
#include "model/document.h"

#define HISTORY_DEFAULT "50"

typedef struct history {
    client *client;
    table *table;
    buf json;
} history;

static bool add(void *context, yyjson_val *item)
{
    history *h = context;
    if (!h->table) {
        json_write(&h->json, item);
        buf_addc(&h->json, '\n');
        return true;
    }
    str who = json_at(h->client, item, "/who");
    table_cell(h->table, json_at(h->client, item, "/sequence"));
    table_cell(h->table, str_part(json_at(h->client, item, "/at"), 0, 19));
    table_cell(h->table, json_at(h->client, item, "/kind"));
    table_cell(h->table, who.len > 0 ? who : STR("-"));
    table_cell(h->table, event_text(h->client, yyjson_obj_get(item, "entry")));
    return true;
}

static exit_status run(const options *given)
{
    static const column columns[] = {{"ENTRY", true, false},
                                     {"TIME", false, false},
                                     {"KIND", false, false},
                                     {"WHO", false, true},
                                     {"WHAT", false, true}};
    exit_status status = STATUS_DONE;
    int64_t limit, last = 0;
    yyjson_val *info = NULL;
    str limit_text = options_text(given, "limit", HISTORY_DEFAULT);
    if (!num_parse(limit_text, &limit) || limit < 1)
        return usage_error(&cmd_history, "--limit: found \"%s\", allowed a number from 1 on",
                           str_shown(limit_text).text);
    scoped(client_cleanup) client *c = client_open(given, &status);
    if (!c)
        return status;
    status = client_call(c, "GET", STR("/api/v1/info"), (str){NULL, 0}, &info);
    if (status != STATUS_DONE)
        return status;
    last = yyjson_get_sint(yyjson_obj_get(info, "sequence"));
    int64_t after = last > limit ? last - limit : 0;
    bool json = str_eq(options_text(given, "output", "table"), STR("json"));
    history h = {
        .client = c, .table = json ? NULL : table_new(columns, 5), .json = BUF(LIMIT_TEXT_BYTES)};
    if (!json && !h.table)
        return fail("memory ran out");
    str path = arena_printf(client_arena(c), "/api/v1/journal?after=%lld", (long long)after);
    status = client_list(c, path, limit, add, &h);
    if (status == STATUS_DONE && h.table)
        table_print(h.table, stdout);
    if (!output_buf(stdout, &h.json))
        status = STATUS_NO;
    table_free(h.table);
    return status;
}

static const option options_of_history[] = {
    OPTION_OUTPUT("table|json"),
    {.name = "limit", .argument = "N", .help = "the last so many entries; 50 unless told"},
    OPTIONS_SERVER,
    OPTIONS_END,
};

const verb cmd_history = {
    .name = "history",
    .summary = "show what happened and who did it",
    .about = "The end of the journal: every fact, every decision and every act.",
    .options = options_of_history,
    .run = run,
};
