/* SPDX-License-Identifier: Apache-2.0 */
/* cel_internal.h - what the files of CEL share. Nobody else includes it, but tests.
 *
 * Text -> tokens (cel_lex) -> nodes (cel_parse, cel_macro) -> checked and bound nodes (cel_check)
 * -> values (cel_eval). A node holds the function that evaluates it: there is no second form. */
#ifndef DROVER_SELECT_CEL_INTERNAL_H
#define DROVER_SELECT_CEL_INTERNAL_H

#include "select/cel.h"
#include "select/cel_regex.h"

/* ---- Tokens ------------------------------------------------------------------------------- */

#define CEL_TOKENS(X)                                                                              \
    X(END, "the end of the expression")                                                            \
    X(BAD, "an error")                                                                             \
    X(IDENT, "a name")                                                                             \
    X(QUOTED, "a quoted name")                                                                     \
    X(LITERAL, "a literal")                                                                        \
    X(MIN_INT, "a literal")                                                                        \
    X(IN, "\"in\"")                                                                                \
    X(LPAREN, "\"(\"")                                                                             \
    X(RPAREN, "\")\"")                                                                             \
    X(LBRACKET, "\"[\"")                                                                           \
    X(RBRACKET, "\"]\"")                                                                           \
    X(LBRACE, "\"{\"")                                                                             \
    X(RBRACE, "\"}\"")                                                                             \
    X(DOT, "\".\"")                                                                                \
    X(COMMA, "\",\"")                                                                              \
    X(COLON, "\":\"")                                                                              \
    X(QUESTION, "\"?\"")                                                                           \
    X(NOT, "\"!\"")                                                                                \
    X(MINUS, "\"-\"")                                                                              \
    X(PLUS, "\"+\"")                                                                               \
    X(STAR, "\"*\"")                                                                               \
    X(SLASH, "\"/\"")                                                                              \
    X(PERCENT, "\"%\"")                                                                            \
    X(AND, "\"&&\"")                                                                               \
    X(OR, "\"||\"")                                                                                \
    X(EQ, "\"==\"")                                                                                \
    X(NE, "\"!=\"")                                                                                \
    X(LT, "\"<\"")                                                                                 \
    X(LE, "\"<=\"")                                                                                \
    X(GT, "\">\"")                                                                                 \
    X(GE, "\">=\"")

typedef enum token_kind {
#define X(kind, text) TOKEN_##kind,
    CEL_TOKENS(X)
#undef X
} token_kind;

typedef struct token {
    token_kind kind;
    uint32_t at; /* byte offset */
    uint32_t len;
    str text;        /* of a name */
    cel_value value; /* of a literal */
    bool reserved;   /* a name that may only follow a dot */
} token;

typedef struct lexer {
    arena *arena;
    str source;
    size_t at;
    cel_error *error;
    bool failed;
} lexer;

/* TOKEN_BAD after a failure, which is in lx->error. */
token cel_lex(lexer *lx);
const char *cel_token_name(token_kind kind);
/* Sets the error once; the first one stays. Returns false. */
bool cel_lex_fail(lexer *lx, size_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void cel_position(str source, size_t at, unsigned *ret_line, unsigned *ret_column);

/* ---- Nodes -------------------------------------------------------------------------------- */

typedef struct node node;
typedef struct run run;
typedef cel_value node_run(run *r, const node *n);
typedef struct cel_function cel_function;

#define CEL_NODES(X)                                                                               \
    X(CONST)                                                                                       \
    X(IDENT)                                                                                       \
    X(SELECT)                                                                                      \
    X(INDEX)                                                                                       \
    X(CALL)                                                                                        \
    X(LIST)                                                                                        \
    X(MAP) X(NOT) X(NEGATE) X(CHAIN) X(AND) X(OR) X(CONDITION) X(LOOP) X(BIND) X(BLOCK) X(OPT_MAP)

typedef enum node_kind {
#define X(kind) NODE_##kind,
    CEL_NODES(X)
#undef X
} node_kind;

/* What a LOOP makes of its range. */
#define CEL_LOOPS(X)                                                                               \
    X(ALL) X(EXISTS) X(EXISTS_ONE) X(FILTER) X(MAP) X(TRANSFORM_MAP) X(TRANSFORM_ENTRY) X(SORT_BY)

typedef enum loop_kind {
#define X(kind) LOOP_##kind,
    CEL_LOOPS(X)
#undef X
} loop_kind;

/* Of a SELECT or INDEX. */
enum { SELECT_PLAIN, SELECT_TEST, SELECT_OPTIONAL };

/* One operator of a chain such as a + b - c, with where it stands. */
typedef struct chain_op {
    token_kind op;
    uint32_t at;
} chain_op;

struct node {
    node_run *run;
    uint8_t kind; /* node_kind */
    uint8_t op;   /* loop_kind, SELECT_...; of NOT and NEGATE 1 when it really changes the value */
    uint16_t height; /* of the tree below, itself included */
    uint32_t at;     /* byte offset in the source */
    uint32_t count;  /* of items */
    uint32_t slot;   /* of a variable or local; first one of a LOOP, BIND or BLOCK */
    node **items;    /* operands; target first; entries as key, value */
    str name;        /* identifier, field, function, variable */
    str name2;       /* second variable of a LOOP */
    union {
        cel_value value;      /* CONST */
        chain_op *ops;        /* CHAIN: ops[i] stands before items[i + 1] */
        const bool *optional; /* LIST, MAP: which entries have a "?"; NULL is none */
        cel_regex *regex;     /* CALL of matches with a constant pattern */
        bool has_target;      /* CALL, while it is parsed */
        bool absolute;        /* IDENT with a leading dot */
    };
    const cel_function *function; /* CALL: its first overload */
    const cel_type *type;         /* NULL is dyn */
    node *next;                   /* while a list of operands is collected */
    chain_op before;              /* the operator in front, likewise */
};

typedef struct regex_link {
    struct regex_link *next;
    cel_regex *regex;
} regex_link;

struct cel_program {
    str source;
    node *root;
    size_t variable_count;
    uint64_t *used; /* bit set of variables */
    uint32_t locals;
    uint32_t regex_count;
    uint64_t regex_size; /* of all of them, in instructions */
    regex_link *regexes;
};

/* ---- Parser ------------------------------------------------------------------------------- */

typedef struct parser {
    lexer lx;
    token tok;
    token before; /* the one that was taken last */
    const cel_env *env;
    unsigned depth;
    uint32_t nodes;
} parser;

node *cel_parse(parser *p);
/* A node with room for count operands, all NULL. NULL after a failure, which is then recorded. */
node *cel_node(parser *p, node_kind kind, uint32_t at, uint32_t count);
/* Sets the height from the operands. NULL when it is too much. */
node *cel_node_done(parser *p, node *n);
/* Makes of a call what its macro stands for; the call itself when it is none. NULL on failure. */
node *cel_macro(parser *p, node *call);
bool cel_parse_fail(parser *p, uint32_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- Checker ------------------------------------------------------------------------------ */

typedef struct local {
    str name;
    const cel_type *type;
    uint32_t slot;
    struct local *outer;
} local;

typedef struct checker {
    arena *arena;
    const cel_env *env;
    cel_program *program;
    lexer *lx; /* for its error */
    local *scope;
    uint32_t slots;
    bool qualified;     /* the environment has names with dots, or a container */
    uint64_t fold_cost; /* what is left for computing constants */
} checker;

/* Resolves names, checks what is certain, folds constants and sets every node's function. */
bool cel_check(checker *c, node *n);
bool cel_check_fail(checker *c, uint32_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Its parts in cel_resolve.c: names, and calls. */
bool cel_check_ident(checker *c, node *n);
bool cel_check_select(checker *c, node *n);
bool cel_check_call(checker *c, node *n);
/* Whether a call is one of a function that is only declared; then its type is set. */
bool cel_check_declared(checker *c, node *n, bool member);
/* A type that cannot work: false with an error, but true when the program is unchecked. */
bool cel_check_mismatch(checker *c, uint32_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The dotted name of a chain of plain selections, or a NULL pointer; needs memory only for those.
 */
str cel_dotted(arena *a, const node *n);
const node *cel_chain_root(const node *n);
local *cel_local(const checker *c, str name);
/* Replaces n by its value if that can be computed now. */
void cel_fold(checker *c, node *n);

/* Types. NULL is dyn everywhere. */
extern const cel_type cel_types[CEL_PARAMETER + 1];
static inline cel_kind type_kind(const cel_type *t)
{
    return t ? t->kind : CEL_DYN;
}
const cel_type *cel_type_make(arena *a, cel_kind kind, const cel_type *key,
                              const cel_type *element);
/* An empty list, map or optional: what it holds is still open. */
const cel_type *cel_type_empty(arena *a, cel_kind kind);
/* What both are: dyn when they differ. */
const cel_type *cel_type_join(arena *a, const cel_type *x, const cel_type *y);
/* "list(map(string, dyn))" */
void cel_type_print(buf *out, const cel_type *t);

/* ---- Evaluation --------------------------------------------------------------------------- */

struct run {
    const cel_program *program;
    const cel_value *bindings;
    cel_value *locals;
    arena *arena;
    uint64_t cost; /* what is left */
    size_t bytes_end;
    unsigned depth;  /* of nested values */
    cel_value fatal; /* no operator absorbs it: memory, cost */
    bool stopped;
    cel_regex *regex; /* the last pattern that was not constant */
    str regex_text;
};

#define AT_UNKNOWN UINT32_MAX

static inline bool is_error(cel_value v)
{
    return v.kind == CEL_ERROR;
}
static inline bool is_bool(cel_value v, bool value)
{
    return v.kind == CEL_BOOL && v.b == value;
}

cel_value cel_cost_exceeded(run *r);

/* The only way to evaluate a node: counts the step. */
static inline cel_value eval(run *r, const node *n)
{
    if (__builtin_expect(r->cost == 0, 0))
        return cel_cost_exceeded(r);
    r->cost--;
    return n->run(r, n);
}

/* False when the cost is used up. */
bool cel_charge(run *r, uint64_t cost);
/* The same for bytes that are looked at or copied. */
bool cel_charge_bytes(run *r, size_t bytes);
/* NULL, and the evaluation ends with an error, when memory or the limit is exhausted. */
void *cel_alloc(run *r, size_t count, size_t element_bytes);
cel_value cel_fail(cel_code code, const char *text);
cel_value cel_failf(run *r, cel_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
cel_value cel_no_overload(run *r, str function, const cel_value *args, uint32_t count);
cel_value cel_no_key(run *r, cel_value key);
cel_value cel_stop(run *r, cel_code code, const char *text);

/* Sets the functions of all nodes; the checker has resolved them before. */
void cel_bind_run(node *n);
extern node_run cel_run_loop, cel_run_bind, cel_run_block, cel_run_opt_map;
/* A binary operator on two values that are no errors. */
cel_value cel_operate(run *r, token_kind op, cel_value a, cel_value b);
cel_value cel_arithmetic(run *r, token_kind op, cel_value a, cel_value b);
/* container[index], and field selection when field is set. */
cel_value cel_index(run *r, cel_value container, cel_value index);
/* Results of functions that build text. */
cel_value cel_text_value(run *r, const char *ptr, size_t len);

/* ---- Values ------------------------------------------------------------------------------- */

enum { FORM_NATIVE, FORM_JSON, FORM_FOREIGN };

/* Positions of elements or keys by their hash: index + 1, 0 is empty. */
typedef struct cel_index_table {
    uint32_t mask;
    uint32_t slots[];
} cel_index_table;

typedef struct cel_list {
    size_t len;
    const cel_value *items;
    const cel_index_table *index; /* of constant lists, for "in" */
} cel_list;

typedef struct cel_map {
    size_t len;
    const cel_entry *entries;
    const cel_index_table *index; /* of larger maps */
} cel_map;

bool cel_same(run *r, cel_value a, cel_value b);
/* False when they cannot be ordered; *ret is -1, 0, 1, or 2 when one is NaN. */
bool cel_order(cel_value a, cel_value b, int *ret);
bool cel_contains(run *r, cel_value list, cel_value item);
bool cel_lookup(run *r, cel_value map, cel_value key, cel_value *ret);
bool cel_is_key(cel_value v);
cel_value cel_native_list(run *r, const cel_value *items, size_t len);
/* Checks the keys. */
cel_value cel_native_map(run *r, const cel_entry *entries, size_t len);
/* Gives a constant list what makes "in" fast; a short one needs nothing. */
void cel_index_list(run *r, cel_value list);
/* For work outside of an evaluation: no limit but the arena's. */
run cel_run_in(arena *a);

typedef struct cel_iter {
    cel_value over;
    size_t i;
    size_t len;
    const void *json; /* cursor */
    arena *arena;
} cel_iter;
cel_iter cel_iterate(run *r, cel_value container);
/* key: the index of a list, the key of a map. */
bool cel_next(cel_iter *it, cel_value *key, cel_value *value);
/* All elements of a list as an array; NULL without memory. */
const cel_value *cel_items(run *r, cel_value list, size_t *ret_len);

/* ---- Functions ---------------------------------------------------------------------------- */

typedef cel_value cel_fn(run *r, const cel_value *args, uint32_t count);

#define CEL_ARGS_MOST 4
#define CEL_VARIADIC 255

struct cel_function {
    str name;
    bool member;
    uint8_t count;                 /* of arguments, with the target; or CEL_VARIADIC */
    uint32_t kinds[CEL_ARGS_MOST]; /* bit sets of kinds */
    cel_kind result;
    cel_fn *fn;
};

/* The first of the overloads with this name and form, or NULL; they stand together. */
const cel_function *cel_function_find(str name, bool member);
static inline bool cel_function_same(const cel_function *a, const cel_function *b)
{
    return a->member == b->member && str_eq(a->name, b->name);
}
const cel_function *cel_function_table(size_t *ret_count);
/* A known name like the wrong one, or NULL. */
const char *cel_function_suggest(str name);
/* Whether some function's name begins with "name.": then it is no variable. */
bool cel_function_space(str name);

/* Text, leniently: every byte that is no UTF-8 counts as one code point. */
size_t cel_code_points(str text);
/* Byte offset of the n-th code point, or SIZE_MAX when there are fewer. */
size_t cel_code_offset(str text, int64_t n);
size_t cel_format_double(double d, char *out, size_t room);
bool cel_render(run *r, buf *out, cel_value v);
cel_value cel_matches(run *r, cel_regex *regex, str text);

#endif
