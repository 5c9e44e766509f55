/* SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/show.h"

/* Puts a|b|c with spaces instead of bars. */
static void add_choices(buf *out, const char *choices)
{
    for (; *choices; choices++)
        buf_addc(out, *choices == '|' ? ' ' : *choices);
}

static bool is_choice(const char *text)
{
    return text && str_find(str_of(text), STR("|")) != SIZE_MAX;
}

/* The words that the first operand may be, with spaces between them. False: it may be anything. */
static bool add_operand_words(buf *out, const verb *c)
{
    str rest = str_of(c->operands ? c->operands : "");
    if (str_eq(rest, STR("[COMMAND]"))) {
        for (const verb *const *v = program_drover.verbs; *v; v++)
            buf_addf(out, "%s%s", v == program_drover.verbs ? "" : " ", (*v)->name);
        return true;
    }
    if (str_starts(rest, STR("[")))
        rest = str_part(rest, 1, rest.len);
    str first = str_cut(&rest, ' ');
    if (str_ends(first, STR("]")))
        first = str_part(first, 0, first.len - 1);
    bool kind = str_eq(first, STR("KIND"));
    if (kind)
        first = STR(SHOW_KINDS_HELP);
    else if (first.len == 0 || first.ptr[0] < 'a' || first.ptr[0] > 'z')
        return false;
    for (size_t i = 0; i < first.len; i++)
        if (first.ptr[i] != ',')
            buf_addc(out, first.ptr[i] == '|' ? ' ' : first.ptr[i]);
    return true;
}

/* Inside single quotes of a shell. */
static void add_quoted(buf *out, const char *text)
{
    buf_addc(out, '\'');
    for (; *text; text++)
        if (*text == '\'')
            buf_addz(out, "'\\''");
        else
            buf_addc(out, *text);
    buf_addc(out, '\'');
}

/* Options where one is begun, else what the operand may be, or files. */
static void bash_words(buf *out, const verb *c)
{
    buf_addf(out, "        %s:-*) words='", c->name);
    for (const option *o = c->options; o && o->name; o++)
        buf_addf(out, "--%s ", o->name);
    buf_addf(out, "--help' ;;\n        %s:*) words='", c->name);
    (void)add_operand_words(out, c);
    buf_addz(out, "' ;;\n");
}

/* After an option with choices come these; after one with an argument come files. */
static void bash_arguments(buf *out, const verb *c)
{
    for (const option *o = c->options; o && o->name; o++) {
        if (!o->argument)
            continue;
        buf_addf(out, "    %s:--%s", c->name, o->name);
        if (o->letter)
            buf_addf(out, "|%s:-%c", c->name, o->letter);
        buf_addz(out, ") ");
        if (is_choice(o->argument)) {
            buf_addz(out, "words='");
            add_choices(out, o->argument);
            buf_addz(out, "' ;;\n");
        } else {
            buf_addz(out, "COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n");
        }
    }
}

static void bash(buf *out)
{
    buf_addz(out, "_drover() {\n"
                  "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
                  "    local words='' command=${COMP_WORDS[1]}\n"
                  "    COMPREPLY=()\n"
                  "    if [ \"$COMP_CWORD\" -eq 1 ]; then words='");
    for (const verb *const *c = program_drover.verbs; *c; c++)
        buf_addf(out, "%s%s", c == program_drover.verbs ? "" : " ", (*c)->name);
    buf_addz(out, "'; else\n    case $command:$before in\n");
    for (const verb *const *c = program_drover.verbs; *c; c++)
        bash_arguments(out, *c);
    buf_addz(out, "    *) case $command:$word in\n");
    for (const verb *const *c = program_drover.verbs; *c; c++)
        bash_words(out, *c);
    buf_addz(out, "        esac ;;\n    esac\n    fi\n"
                  "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}\n"
                  "complete -o default -F _drover drover\n");
}

static void zsh_option(buf *out, const option *o)
{
    char text[LIMIT_ERR_BYTES];
    snprintf(text, sizeof text, "%s--%s[%s]", o->repeatable ? "*" : "", o->name, o->help);
    buf all = BUF(LIMIT_ERR_BYTES * 2);
    buf_addz(&all, text);
    if (is_choice(o->argument)) {
        buf_addf(&all, ":%s:(", o->name);
        add_choices(&all, o->argument);
        buf_addc(&all, ')');
    } else if (o->argument) {
        buf_addf(&all, ":%s:_files", o->argument);
    }
    buf_addc(&all, 0);
    buf_addz(out, " \\\n            ");
    add_quoted(out, all.failed ? "" : all.ptr);
    if (o->letter && !all.failed) {
        buf_addz(out, " \\\n            ");
        const char *behind = strchr(all.ptr, '[');
        buf letter = BUF(LIMIT_ERR_BYTES * 2);
        buf_addf(&letter, "%s-%c%s", o->repeatable ? "*" : "", o->letter, behind ? behind : "");
        buf_addc(&letter, 0);
        add_quoted(out, letter.failed ? "" : letter.ptr);
        buf_done(&letter);
    }
    buf_done(&all);
}

static void zsh(buf *out)
{
    buf_addz(out, "#compdef drover\n_drover() {\n    if (( CURRENT == 2 )); then\n"
                  "        local -a verbs=(\n");
    for (const verb *const *c = program_drover.verbs; *c; c++) {
        char text[LIMIT_ERR_BYTES];
        snprintf(text, sizeof text, "%s:%s", (*c)->name, (*c)->summary);
        buf_addz(out, "            ");
        add_quoted(out, text);
        buf_addc(out, '\n');
    }
    buf_addz(out, "        )\n        _describe command verbs\n        return\n    fi\n"
                  "    local verb=$words[2]\n    shift words\n    (( CURRENT-- ))\n"
                  "    case $verb in\n");
    for (const verb *const *c = program_drover.verbs; *c; c++) {
        buf_addf(out, "        %s) _arguments '--help[print this help]'", (*c)->name);
        for (const option *o = (*c)->options; o && o->name; o++)
            zsh_option(out, o);
        buf words = BUF(LIMIT_ERR_BYTES);
        if (add_operand_words(&words, *c))
            buf_addf(out, " '1:what:(%.*s)'", STR_ARG(buf_str(&words)));
        buf_done(&words);
        buf_addz(out, " ;;\n");
    }
    buf_addz(out, "    esac\n}\n_drover \"$@\"\n");
}

static void fish(buf *out)
{
    buf_addz(out, "complete -c drover -f\n");
    for (const verb *const *c = program_drover.verbs; *c; c++) {
        buf_addf(out, "complete -c drover -n __fish_use_subcommand -a %s -d ", (*c)->name);
        add_quoted(out, (*c)->summary);
        buf_addc(out, '\n');
        for (const option *o = (*c)->options; o && o->name; o++) {
            buf_addf(out, "complete -c drover -n '__fish_seen_subcommand_from %s' -l %s",
                     (*c)->name, o->name);
            if (o->letter)
                buf_addf(out, " -s %c", o->letter);
            if (is_choice(o->argument)) {
                buf_addz(out, " -x -a '");
                add_choices(out, o->argument);
                buf_addc(out, '\'');
            } else if (o->argument) {
                buf_addz(out, " -r -F");
            }
            buf_addz(out, " -d ");
            add_quoted(out, o->help);
            buf_addc(out, '\n');
        }
        buf words = BUF(LIMIT_ERR_BYTES);
        if (add_operand_words(&words, *c))
            buf_addf(out, "complete -c drover -n '__fish_seen_subcommand_from %s' -a '%.*s'\n",
                     (*c)->name, STR_ARG(buf_str(&words)));
        buf_done(&words);
    }
}

static exit_status run(const options *given)
{
    static const struct {
        str name;
        void (*write)(buf *out);
    } shells[] = {{STR("bash"), bash}, {STR("zsh"), zsh}, {STR("fish"), fish}};
    str shell = given->operands.at[0];
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
        if (!str_eq(shell, shells[i].name))
            continue;
        buf out = BUF(LIMIT_TEXT_BYTES);
        shells[i].write(&out);
        return output_buf(stdout, &out) ? STATUS_DONE : STATUS_NO;
    }
    return usage_error(&cmd_completion, "found \"%s\", allowed bash, zsh or fish",
                       str_shown(shell).text);
}

const verb cmd_completion = {
    .name = "completion",
    .summary = "print a script that completes drover's words in a shell",
    .operands = "bash|zsh|fish",
    .operands_min = 1,
    .operands_max = 1,
    .about = "For bash, in ~/.bashrc: source <(drover completion bash)\n"
             "For zsh, in a folder of $fpath: drover completion zsh > _drover\n"
             "For fish: drover completion fish > ~/.config/fish/completions/drover.fish",
    .run = run,
};
