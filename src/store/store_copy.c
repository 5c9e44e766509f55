/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of the whole store, made piece by piece with SQLite's own means: what this process writes
 * in between reaches the copy, too. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/store_internal.h"

/* One piece: a megabyte. */
#define COPY_PAGES 256

struct store_copy {
    store *from;
    sqlite3 *to;
    sqlite3_backup *work;
};

store_copy *store_copy_begin(store *s, str path, err *error)
{
    char name[LIMIT_PATH_BYTES];
    if (path.len == 0 || path.len >= sizeof name) {
        err_set(error, "found a file name of %zu bytes, allowed 1 to %zu", path.len,
                sizeof name - 1);
        return NULL;
    }
    snprintf(name, sizeof name, "%.*s", STR_ARG(path));
    if (access(name, F_OK) == 0) {
        err_set(error, "%s exists already", name);
        return NULL;
    }
    store_copy *k = mem_zalloc(sizeof *k);
    if (!k) {
        err_memory(error);
        return NULL;
    }
    k->from = s;
    mode_t before = umask(0077); /* it has all that the store has */
    int code = sqlite3_open_v2(name, &k->to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    /* Whoever wants it on disk waits for the disk: a copy that is not finished is worth nothing. */
    if (code == SQLITE_OK)
        code = sqlite3_exec(k->to, "PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF", NULL,
                            NULL, NULL);
    if (code == SQLITE_OK)
        k->work = sqlite3_backup_init(k->to, "main", s->db, "main");
    umask(before);
    if (k->work)
        return k;
    err_set(error, "writing the backup: %s", k->to ? sqlite3_errmsg(k->to) : "out of memory");
    return store_copy_end(k);
}

bool store_copy_step(store_copy *k, bool *ret_done, err *error)
{
    int code = sqlite3_backup_step(k->work, COPY_PAGES);
    *ret_done = code == SQLITE_DONE;
    if (code == SQLITE_OK || code == SQLITE_DONE)
        return true;
    return err_set(error, "writing the backup: %s",
                   code == SQLITE_FULL ? "the disk is full" : sqlite3_errstr(code));
}

store_copy *store_copy_end(store_copy *k)
{
    if (!k)
        return NULL;
    sqlite3_backup_finish(k->work);
    sqlite3_close(k->to);
    return mem_free(k);
}

bool store_backup(store *s, str path, err *error)
{
    bool done = false;
    store_copy *k = store_copy_begin(s, path, error);
    bool good = k != NULL;
    while (good && !done)
        good = store_copy_step(k, &done, error);
    store_copy_end(k);
    return good;
}
