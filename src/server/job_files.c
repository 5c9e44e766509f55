/* SPDX-License-Identifier: Apache-2.0 */
#include "server/job_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/num.h"

#define FORMAT STR("drover-job 1")
#define WORDS_MOST 100000

static const char *const endings[] = {
#define X(file, ending) [JOB_FILE_##file] = (ending),
    JOB_FILES(X)
#undef X
};

static bool path_of(str folder, int64_t number, const char *ending, char out[LIMIT_PATH_BYTES])
{
    int len =
        snprintf(out, LIMIT_PATH_BYTES, "%.*s/%lld.%s", STR_ARG(folder), (long long)number, ending);
    return len > 0 && len < LIMIT_PATH_BYTES;
}

bool job_path(str folder, int64_t number, job_file file, char out[LIMIT_PATH_BYTES])
{
    return path_of(folder, number, endings[file], out);
}

/* ---- whole files ---- */

static bool write_all(int fd, str text)
{
    while (text.len > 0) {
        ssize_t n = write(fd, text.ptr, text.len);
        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0)
            text = str_part(text, (size_t)n, SIZE_MAX);
    }
    return true;
}

static void sync_folder(str folder)
{
    char path[LIMIT_PATH_BYTES];
    snprintf(path, sizeof path, "%.*s", STR_ARG(folder));
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}

/* The file appears whole or not at all, and never in place of another. */
static bool make_file(str folder, int64_t number, job_file file, str text, err *error)
{
    char path[LIMIT_PATH_BYTES], draft[LIMIT_PATH_BYTES], ending[32];
    snprintf(ending, sizeof ending, "%s.%ld", endings[file], (long)getpid());
    if (!job_path(folder, number, file, path) || !path_of(folder, number, ending, draft)) {
        errno = ENAMETOOLONG;
        return err_set(error, "the folder's name is too long");
    }
    int fd = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool good = fd >= 0 && write_all(fd, text) && fsync(fd) == 0;
    int why = errno;
    if (fd >= 0)
        close(fd);
    if (good && link(draft, path) != 0) {
        good = false;
        why = errno;
    }
    unlink(draft);
    if (good)
        sync_folder(folder);
    errno = why;
    return good || err_set(error, "%s: %s", path, strerror(why));
}

static bool read_file(int fd, arena *a, str *ret, err *error)
{
    struct stat about;
    if (fstat(fd, &about) != 0)
        return err_set(error, "%s", strerror(errno));
    if (about.st_size < 0 || (uint64_t)about.st_size > LIMIT_TEXT_BYTES)
        return err_set(error, "found %lld bytes, allowed %u", (long long)about.st_size,
                       LIMIT_TEXT_BYTES);
    char *text = arena_alloc(a, (size_t)about.st_size + 1);
    if (!text)
        return err_memory(error);
    ssize_t n = pread(fd, text, (size_t)about.st_size, 0);
    if (n != about.st_size)
        return err_set(error, "%s", n < 0 ? strerror(errno) : "the file is cut off");
    *ret = (str){text, (size_t)n};
    return true;
}

/* ---- the spec: words, each with a zero byte behind it ---- */

static void put_word(buf *out, str word)
{
    buf_add(out, word);
    buf_addc(out, '\0');
}

static void put_number(buf *out, int64_t number)
{
    buf_addf(out, "%lld", (long long)number);
    buf_addc(out, '\0');
}

static void put_words(buf *out, const str *words, size_t len)
{
    put_number(out, (int64_t)len);
    for (size_t i = 0; i < len; i++)
        put_word(out, words[i]);
}

static void put_command(buf *out, const job_command *c)
{
    put_word(out, c->workdir);
    put_words(out, c->argv, c->argv_len);
    put_words(out, c->env, c->env_len);
}

void job_spec_write(const job_spec *spec, buf *out)
{
    put_word(out, FORMAT);
    put_number(out, spec->timeout_ms);
    put_number(out, spec->grace_ms);
    put_number(out, spec->verified);
    put_command(out, &spec->run);
    if (spec->verified)
        put_command(out, &spec->verify);
    put_word(out, spec->metrics.ptr ? spec->metrics : STR_EMPTY);
}

bool job_spec_make(str folder, int64_t number, str text, err *error)
{
    return make_file(folder, number, JOB_FILE_SPEC, text, error) || errno == EEXIST;
}

/* A word is cut at its zero byte, which stays behind it. */
static bool get_word(str *text, str *ret)
{
    if (text->len == 0 || !memchr(text->ptr, 0, text->len))
        return false;
    *ret = str_cut(text, '\0');
    return true;
}

static bool get_number(str *text, int64_t *ret)
{
    str word;
    return get_word(text, &word) && num_parse(word, ret);
}

static bool get_words(str *text, arena *a, str **ret, size_t *ret_len)
{
    int64_t len;
    if (!get_number(text, &len) || len < 0 || len > WORDS_MOST)
        return false;
    *ret = ARENA_ARRAY(a, (size_t)len + 1, str);
    *ret_len = (size_t)len;
    bool good = *ret != NULL;
    for (int64_t i = 0; good && i < len; i++)
        good = get_word(text, &(*ret)[i]);
    return good;
}

static bool get_command(str *text, arena *a, job_command *ret)
{
    return get_word(text, &ret->workdir) && get_words(text, a, &ret->argv, &ret->argv_len) &&
           get_words(text, a, &ret->env, &ret->env_len);
}

bool job_spec_read(int fd, arena *a, job_spec *ret, err *error)
{
    str text, format;
    int64_t verified = 0;
    if (!read_file(fd, a, &text, error))
        return false;
    bool good = get_word(&text, &format) && str_eq(format, FORMAT) &&
                get_number(&text, &ret->timeout_ms) && get_number(&text, &ret->grace_ms) &&
                get_number(&text, &verified) && get_command(&text, a, &ret->run) &&
                (!verified || get_command(&text, a, &ret->verify));
    if (good && !get_word(&text, &ret->metrics)) /* made before there were any */
        ret->metrics = STR_EMPTY;
    ret->verified = verified != 0;
    return good || err_set(error, "found a spec that is none");
}

/* ---- how it ended: "OUTCOME VERIFICATION REASON" ---- */

bool job_exit_make(str folder, int64_t number, const job_exit *e, err *error)
{
    buf out = BUF(LIMIT_TEXT_BYTES);
    buf_addf(&out, "%s %s %.*s", e->outcome == OUTCOME_SUCCEEDED ? "succeeded" : "failed",
             e->verification_failed ? "failed" : "good", STR_ARG(e->reason));
    errno = ENOMEM;
    bool good = out.failed ? err_memory(error)
                           : make_file(folder, number, JOB_FILE_EXIT, buf_str(&out), error);
    buf_done(&out);
    return good;
}

static bool exit_read(str folder, int64_t number, arena *a, job_exit *ret, err *error)
{
    char path[LIMIT_PATH_BYTES];
    int fd = job_path(folder, number, JOB_FILE_EXIT, path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    str text;
    error->text[0] = '\0';
    if (fd < 0)
        return errno == ENOENT ? false : err_set(error, "%s: %s", path, strerror(errno));
    bool good = read_file(fd, a, &text, error);
    close(fd);
    if (!good)
        return false;
    str outcome_word = str_cut(&text, ' '), verification_word = str_cut(&text, ' ');
    *ret = (job_exit){.outcome = str_eq(outcome_word, STR("succeeded")) ? OUTCOME_SUCCEEDED
                                                                        : OUTCOME_FAILED,
                      .verification_failed = str_eq(verification_word, STR("failed")),
                      .reason = text.ptr ? text : STR_EMPTY};
    return true;
}

/* ---- looking ---- */

static bool exists(str folder, int64_t number, job_file file)
{
    char path[LIMIT_PATH_BYTES];
    return job_path(folder, number, file, path) && access(path, F_OK) == 0;
}

/* Who holds the lock; 0: nobody. The lock belongs to a process, and the kernel says to which. */
static pid_t lock_holder(int spec)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(spec, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK)
        return 0;
    return lock.l_pid;
}

bool job_look_at(str folder, int64_t number, arena *a, job_look *ret, err *error)
{
    char path[LIMIT_PATH_BYTES];
    job_look look = {.state = JOB_DISK_NONE};
    if (!job_path(folder, number, JOB_FILE_SPEC, path))
        return err_set(error, "the folder's name is too long");
    int spec = open(path, O_RDWR | O_CLOEXEC);
    if (spec < 0 && errno != ENOENT)
        return err_set(error, "%s: %s", path, strerror(errno));
    if (spec >= 0) {
        /* In this order: "run" is made and "exit" is made while the lock is held. */
        bool ran = exists(folder, number, JOB_FILE_RUN);
        look.supervisor = lock_holder(spec);
        close(spec);
        bool ended = exit_read(folder, number, a, &look.exit, error);
        if (!ended && error->text[0] != '\0')
            return false;
        look.state = ended             ? JOB_DISK_ENDED
                     : look.supervisor ? JOB_DISK_RUNNING
                     : ran             ? JOB_DISK_LOST
                                       : JOB_DISK_NOT_STARTED;
    }
    *ret = look;
    return true;
}

bool job_spec_is(str folder, int64_t number, int fd)
{
    char path[LIMIT_PATH_BYTES];
    struct stat opened, present;
    return job_path(folder, number, JOB_FILE_SPEC, path) && fstat(fd, &opened) == 0 &&
           stat(path, &present) == 0 && opened.st_ino == present.st_ino &&
           opened.st_dev == present.st_dev;
}

bool job_signal(str folder, int64_t number, int signal_number)
{
    char path[LIMIT_PATH_BYTES];
    int spec = job_path(folder, number, JOB_FILE_SPEC, path) ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (spec < 0)
        return false;
    /* Between looking and sending the number may become another's: the second look is made while
     * the process is held by its descriptor. */
    pid_t holder = lock_holder(spec);
    int process = holder > 0 ? (int)syscall(SYS_pidfd_open, holder, 0) : -1;
    bool good = process >= 0 && lock_holder(spec) == holder &&
                syscall(SYS_pidfd_send_signal, process, signal_number, NULL, 0) == 0;
    if (process >= 0)
        close(process);
    close(spec);
    return good;
}

void job_files_remove(str folder, int64_t number)
{
    char path[LIMIT_PATH_BYTES];
    /* "run" goes last: as long as there is a spec, it keeps the job from being run again. */
    const job_file files[] = {JOB_FILE_EXIT, JOB_FILE_SPEC, JOB_FILE_RUN};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (job_path(folder, number, files[i], path))
            unlink(path);
}

void job_drafts_remove(str folder)
{
    char path[LIMIT_PATH_BYTES];
    snprintf(path, sizeof path, "%.*s", STR_ARG(folder));
    DIR *all = opendir(path);
    if (!all)
        return;
    /* Drafts of "exit" are left alone: a supervisor may be making one. */
    for (const struct dirent *e; (e = readdir(all));) {
        int len = snprintf(path, sizeof path, "%.*s/%s", STR_ARG(folder), e->d_name);
        if (strstr(e->d_name, ".spec.") && len > 0 && (size_t)len < sizeof path)
            unlink(path);
    }
    closedir(all);
}
