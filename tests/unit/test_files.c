/* SPDX-License-Identifier: Apache-2.0 */
#include "support/check.h"

#include <sys/stat.h>
#include <unistd.h>

#include "cli/files.h"

static char folder[] = "/tmp/drover-test-XXXXXX";

static void write_file(const char *name, const char *text)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    write_file("b.yaml", "bee");
    write_file("a.json", "");
    write_file("c.yml", "sea");
    write_file("d.txt", "not read");
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    static const char *const names[] = {"b.yaml", "a.json", "c.yml", "d.txt"};
    char path[200];
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

static void count_trouble(void *context, str path, const char *message)
{
    (void)path;
    assert_true(strlen(message) > 0);
    ++*(int *)context;
}

static void test_folder(void **state)
{
    (void)state;
    int troubles = 0;
    files *f = files_new(count_trouble, &troubles);
    assert_true(files_add(f, str_of(folder)));
    assert_int_equal(files_count(f), 3);
    check_text(files_at(f, 0)->bytes, "");
    check_text(files_at(f, 1)->bytes, "bee");
    check_text(files_at(f, 2)->bytes, "sea");
    assert_true(str_ends(files_at(f, 1)->name, STR("/b.yaml")));
    assert_false(files_add(f, STR("/no/such/file")));
    assert_int_equal(troubles, 1);
    assert_int_equal(files_count(f), 3);
    files_free(f);
}

static bool read_folder(void *context)
{
    (void)context;
    int troubles = 0;
    files *f = files_new(count_trouble, &troubles);
    bool good = f && files_add(f, str_of(folder));
    assert_true(!f || good == (troubles == 0));
    files_free(f);
    return good;
}

static void test_each_allocation_fails(void **state)
{
    (void)state;
    check_each_allocation_fails(read_folder, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folder),
        cmocka_unit_test(test_each_allocation_fails),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
