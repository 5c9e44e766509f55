/* SPDX-License-Identifier: Apache-2.0 */
/* client.h - how commands talk to a server.
 *
 * Finds server and token by itself: --server and --token-file, else DROVER_SERVER and DROVER_TOKEN,
 * else what the server of this machine left in its data folder. Says what went wrong, once, on
 * standard error; the status that is returned is the command's. */
#ifndef DROVER_CLI_CLIENT_H
#define DROVER_CLI_CLIENT_H

#include <stdio.h>
#include <yyjson.h>

#include "base/arena.h"
#include "cli/command.h"
#include "cli/data_folder.h"

#define CLIENT_ANSWER_BYTES_MAX (512u * 1024u * 1024u)
#define CLIENT_CONNECT_SECONDS 5L
#define CLIENT_PAGE_ITEMS 500

#define OPTIONS_SERVER                                                                             \
    {.name = "server",                                                                             \
     .argument = "URL",                                                                            \
     .help = "the server; $DROVER_SERVER or the one of this machine unless told"},                 \
        {.name = "token-file",                                                                     \
         .argument = "FILE",                                                                       \
         .help = "holds the token; $DROVER_TOKEN or the administrator's unless told"},             \
        {.name = "ca-file",                                                                        \
         .argument = "FILE",                                                                       \
         .help = "certificates that the server's must be signed by, PEM"},                         \
        OPTION_DATA

typedef struct client client;

/* NULL: *ret_status says why, and so does standard error. */
client *client_open(const options *given, exit_status *ret_status);
client *client_close(client *c);
void client_cleanup(client **c);
/* Where it is, such as "http://127.0.0.1:7070". */
const char *client_server(const client *c);
/* Of what is read: lives as long as the client, or until client_forget. */
arena *client_arena(client *c);
/* Gives back all memory of answers and paths, for commands that go on for long. */
void client_forget(client *c);

/* From now on a request is given up when it is not answered in that time; 0: never. */
void client_hurry(client *c, int64_t timeout_ms);

/* Sends a request and reads the JSON answer into the client's memory. body.ptr NULL: none. Refusals
 * are printed; ret may be NULL. */
exit_status client_call(client *c, const char *method, str path, str body, yyjson_val **ret);
/* The same without a word. */
typedef struct client_answer {
    long status; /* of HTTP; 0: there was none */
    yyjson_val *json;
} client_answer;
exit_status client_try(client *c, const char *method, str path, str body, client_answer *ret);
/* The answer as it is, whatever it is; to be freed by the caller. */
exit_status client_text(client *c, str path, buf *ret);
/* Whether there is a server to talk to: one was named, or one of this machine left its address. */
bool client_known(const options *given);
/* Makes a CURL handle ready for a GET of the path; returns its headers, to be freed after it. */
struct curl_slist *client_prepare(const client *c, void *handle, str path);
/* Writes what comes, as it comes. */
exit_status client_stream(client *c, str path, FILE *to);
/* All items of a list, page by page, at most limit (0: all); path has its query already, if any. */
typedef bool (*item_visitor)(void *context, yyjson_val *item);
exit_status client_list(client *c, str path, int64_t limit, item_visitor visit, void *context);

/* "/api/v1/%s/%s" with every argument encoded; texts are zero-terminated. */
str client_path(client *c, const char *format, ...);

/* Text of a member, such as "/spec/tag"; numbers and others as JSON. */
str json_at(client *c, yyjson_val *value, const char *pointer);
/* An object of texts: key, value, key, value, ..., NULL; NULL and empty values are left out. */
str json_texts(client *c, const char *key, ...);

#endif
