/* SPDX-License-Identifier: Apache-2.0 */
/* The snapshot, out: at once, or beside the work and in pieces.
 *
 * Beside the work a child process writes the text: it has the memory of this one as it was after a
 * commit, and nobody waits for it. It leaves the text in a file without a name. Then one part after
 * the other goes into the store, each with a commit, and the last one makes it the snapshot; the
 * parts of the one before are then taken out, one by one. A crash anywhere leaves the snapshot that
 * was there. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/control_internal.h"

#define SNAPSHOT_FORMAT_TEXT "1"
#define PART_BYTES ((size_t)256 * 1024)
/* Between two looks at the child, and between two parts. */
#define LOOK_MS INT64_C(20)
#define PART_MS INT64_C(5)

/* ---- the text ---- */

static int by_key(const void *a, const void *b)
{
    const held_document *const *left = a, *const *right = b;
    return str_cmp((*left)->key, (*right)->key);
}

/* Sorted, so that the same state is the same text. */
static bool add_documents(const control *c, buf *out)
{
    VEC(const held_document *) sorted = {0};
    bool good = true;
    for (size_t i = 0; good && i < c->documents.len; i++)
        good = vec_push(&sorted, (const held_document *)(uintptr_t)c->documents.entries[i].value);
    if (good && sorted.len > 1)
        qsort(sorted.at, sorted.len, sizeof sorted.at[0], by_key);
    for (size_t i = 0; good && i < sorted.len; i++) {
        object_write(&sorted.at[i]->object, out);
        buf_addc(out, '\n');
        good = !out->failed;
    }
    vec_done(&sorted);
    return good;
}

static void add_attempts(const control *c, buf *out)
{
    for (size_t i = 0; i < c->attempts.len; i++) {
        const attempt_row *row = (const attempt_row *)(uintptr_t)c->attempts.entries[i].value;
        buf_addf(out, "%lld ", (long long)row->attempt);
        buf_add(out, (str){row->key, row->len});
        buf_addc(out, '\n');
    }
}

static bool snapshot_text(const control *c, buf *out)
{
    buf_addf(out,
             "{\"format\":" SNAPSHOT_FORMAT_TEXT
             ",\"nowMs\":%lld,\"step\":%lld,\"documents\":%zu,\"attempts\":%zu}\n",
             (long long)c->engine_ms, (long long)c->step, c->documents.len, c->attempts.len);
    bool good = add_documents(c, out);
    add_attempts(c, out);
    return good && engine_save(c->engine, out) && !out->failed;
}

/* ---- parts ---- */

static size_t part_bytes(const control *c)
{
    return c->settings.snapshot_part_bytes > 0 ? (size_t)c->settings.snapshot_part_bytes
                                               : PART_BYTES;
}

/* The next part, or the end of it. */
static bool put_part(control *c, snapshot_work *w, err *error)
{
    size_t at = (size_t)w->parts * part_bytes(c);
    if (at >= w->text.len)
        return store_use_snapshot(c->store, w->sequence, w->parts, error);
    str part = str_part(w->text, at, part_bytes(c));
    if (!store_put_snapshot_part(c->store, (snapshot_part){w->sequence, w->parts, part}, error))
        return false;
    w->parts++;
    return true;
}

static bool all_parts_are_in(const control *c, const snapshot_work *w)
{
    return (size_t)w->parts * part_bytes(c) >= w->text.len;
}

bool control_snapshot(control *c, err *error)
{
    buf text = BUF(LIMIT_TEXT_BYTES);
    snapshot_stop(c);
    bool good = snapshot_text(c, &text) || err_memory(error), more = true;
    snapshot_work w = {.sequence = store_sequence(c->store), .text = buf_str(&text)};
    while (good && !all_parts_are_in(c, &w))
        good = put_part(c, &w, error);
    good = good && put_part(c, &w, error);
    if (good)
        c->snapshot_sequence = w.sequence;
    err ignored; /* what is left over goes with the next one */
    while (good && more)
        more = store_drop_snapshot_part(c->store, &more, &ignored) && more;
    buf_done(&text);
    return good;
}

/* ---- beside the work ---- */

static bool write_file(int file, str text)
{
    while (text.len > 0) {
        ssize_t n = write(file, text.ptr, text.len);
        if (n <= 0)
            return false;
        text = str_part(text, (size_t)n, text.len);
    }
    return true;
}

static _Noreturn void make_in_child(const control *c, int file, pid_t parent)
{
    /* Connections and the lock of the folder are the parent's: they must end when it lets go. */
    if (file > 3)
        close_range(3, (unsigned)file - 1, 0);
    close_range((unsigned)file + 1, ~0U, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    buf text = BUF(LIMIT_TEXT_BYTES);
    bool good = getppid() == parent && snapshot_text(c, &text) && write_file(file, buf_str(&text));
    _exit(good ? 0 : 1);
}

void snapshot_start(control *c)
{
    snapshot_work *w = &c->snapshot;
    if (w->stage != SNAPSHOT_RESTS)
        return;
    /* Another attempt, if it fails, after as many entries again. */
    c->snapshot_sequence = store_sequence(c->store);
    int file = memfd_create("drover-snapshot", MFD_CLOEXEC);
    if (file < 0)
        return;
    pid_t parent = getpid(), child = fork();
    if (child == 0)
        make_in_child(c, file, parent);
    if (child < 0) {
        close(file);
        return;
    }
    *w = (snapshot_work){.stage = SNAPSHOT_IS_MADE,
                         .sequence = c->snapshot_sequence,
                         .child = child,
                         .file = file,
                         .next_ms = c->now_ms + LOOK_MS};
}

/* Takes over what the child has left. */
static bool take_text(snapshot_work *w)
{
    struct stat about;
    if (fstat(w->file, &about) != 0 || about.st_size <= 0)
        return false;
    void *text = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, w->file, 0);
    if (text == MAP_FAILED)
        return false;
    w->text = (str){text, (size_t)about.st_size};
    return true;
}

static void look_at_child(control *c, snapshot_work *w)
{
    int status = 0;
    pid_t ended = waitpid(w->child, &status, WNOHANG);
    w->next_ms = c->now_ms + LOOK_MS;
    if (ended == 0)
        return;
    w->child = 0;
    if (ended > 0 && status == 0 && take_text(w))
        w->stage = SNAPSHOT_IS_WRITTEN;
    else
        snapshot_stop(c);
}

static void forget_text(snapshot_work *w)
{
    if (w->text.len > 0)
        munmap((void *)(uintptr_t)w->text.ptr, w->text.len);
    w->text = STR_EMPTY;
    if (w->file > 0)
        close(w->file);
    w->file = 0;
}

static bool write_piece(control *c, snapshot_work *w, err *error)
{
    bool last = all_parts_are_in(c, w), more = true;
    if (w->stage == SNAPSHOT_IS_CLEANED) {
        if (!store_drop_snapshot_part(c->store, &more, error))
            return false;
        w->stage = more ? SNAPSHOT_IS_CLEANED : SNAPSHOT_RESTS;
        return true;
    }
    if (!put_part(c, w, error))
        return false;
    if (last) {
        w->stage = SNAPSHOT_IS_CLEANED;
        forget_text(w);
    }
    return true;
}

void snapshot_step(control *c)
{
    snapshot_work *w = &c->snapshot;
    err error; /* without a snapshot the next start takes longer; nothing else */
    if (w->stage == SNAPSHOT_RESTS || w->next_ms > c->now_ms)
        return;
    if (w->stage == SNAPSHOT_IS_MADE) {
        look_at_child(c, w);
        return;
    }
    w->next_ms = c->now_ms + PART_MS;
    if (!commit_begin(c, &error)) {
        snapshot_stop(c);
        return;
    }
    bool good = write_piece(c, w, &error);
    if (!good)
        store_take_back(c->store);
    if (!commit_end(c, good, &error))
        snapshot_stop(c);
}

int64_t snapshot_next_ms(const control *c)
{
    return c->snapshot.stage == SNAPSHOT_RESTS ? REASON_NEVER : c->snapshot.next_ms;
}

void snapshot_stop(control *c)
{
    snapshot_work *w = &c->snapshot;
    if (w->child > 0) {
        kill(w->child, SIGKILL);
        waitpid(w->child, NULL, 0);
    }
    forget_text(w);
    *w = (snapshot_work){.stage = SNAPSHOT_RESTS};
}
