/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory a deployment takes until it is placed: as many times its manifests as
 * MANIFEST_PEAK_TIMES says, whatever they are made of. */
#include <unistd.h>

#include "base/footprint.h"
#include "support/agent_world.h"

#define SIZE (8u << 20)
#define KIB 1024

#if defined(__SANITIZE_ADDRESS__)
#define MEASURES false /* freed memory is kept for a while to find who uses it */
#else
#define MEASURES true
#endif

/* A line of /proc/self/status, in bytes. */
static size_t status_bytes(const char *name)
{
    char line[256];
    size_t kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            kib = strtoul(line + strlen(name) + 1, NULL, 10);
    fclose(file);
    return kib * KIB;
}

/* The most that was resident counts from now on. */
static size_t begin_measure(void)
{
    footprint_shrink();
    FILE *file = fopen("/proc/self/clear_refs", "w");
    assert_non_null(file);
    fputs("5", file);
    assert_int_equal(fclose(file), 0);
    return status_bytes("VmRSS");
}

typedef void fill(buf *out, size_t number);

static void put_definition(buf *out, size_t number)
{
    buf_addf(out,
             "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
             "metadata: {name: things%zu.example.test}\nspec:\n  group: example.test\n"
             "  scope: Namespaced\n  names: {kind: Thing%zu, plural: things%zu}\n"
             "  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n"
             "      openAPIV3Schema:\n        type: object\n        properties:\n",
             number, number, number);
    for (size_t i = 0; i < 1000; i++)
        buf_addf(out,
                 "          property%zu:\n            description: |-\n              What it is "
                 "for, and what happens when it is not given at all.\n            type: string\n"
                 "            maxLength: 63\n",
                 i);
}

static void put_texts(buf *out, size_t number)
{
    buf_addf(out,
             "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: map%zu}\ndata:\n  all: |\n",
             number);
    for (size_t i = 0; i < 2000; i++)
        buf_addf(out, "    %zu: all work and no play makes a dull text, again and again\n", i);
}

static void put_numbers(buf *out, size_t number)
{
    buf_addf(out, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: map%zu}\nlist: [1",
             number);
    for (size_t i = 0; i < 60000; i++)
        buf_addz(out, ",1");
    buf_addz(out, "]\n");
}

/* Goes on until everything is placed, and the first object is looked at. */
static void run_placed(agent_world *w, deployment_steps *s)
{
    bool killed = false;
    for (int i = 0; i < 20; i++) {
        steps_world world = world_facts(w);
        step next = steps_next(s, &world);
        if (next.kind == STEP_READ_OBJECT)
            return;
        check_msg(next.kind != STEP_WAIT, "%.*s", STR_ARG(next.why));
        step_answer answer = world_do(w, &next, &killed);
        steps_answer(s, &world, &answer);
    }
    fail_msg("nothing is placed");
}

static void check_peak(fill *put, const char *what)
{
    agent_world w = world_new();
    buf text = BUF(2 * SIZE);
    for (size_t i = 0; text.len < SIZE; i++)
        put(&text, i);
    world_release(&w, "web", text.ptr, "\"options\":{\"defaultNamespace\":\"shop\"}");
    size_t size = text.len;
    buf_done(&text);
    deployment_steps *s = steps_new(STR("web"));
    assert_non_null(s);
    world_show(&w, s, "web");
    size_t before = begin_measure();
    run_placed(&w, s);
    size_t peak = status_bytes("VmHWM") - before;
    print_message("%s: %.1f times\n", what, (double)peak / (double)size);
    check_msg(!MEASURES || peak <= MANIFEST_PEAK_TIMES * size, "%zu bytes for %zu", peak, size);
    steps_free(s);
    world_done(&w);
}

static void test_peak(void **state)
{
    (void)state;
    check_peak(put_definition, "definitions");
    check_peak(put_texts, "texts");
    check_peak(put_numbers, "numbers");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_peak)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
