/* SPDX-License-Identifier: Apache-2.0 */
/* kubeconfig.h - which API server to talk to, and as whom.
 *
 * Reads kubeconfig files as kubectl does: several of them, of two entries with one name the first
 * counts, paths are relative to the file they stand in. Inside a pod the service account's files
 * take their place. Only reads: exec plugins are run and tokens re-read by the credentials of the
 * transport. */
#ifndef DROVER_KUBE_KUBECONFIG_H
#define DROVER_KUBE_KUBECONFIG_H

#include "base/arena.h"
#include "base/err.h"

#define KUBECONFIG_BYTES_MAX (8u << 20)
#define KUBECONFIG_FILES_MAX 64

typedef struct kube_variable {
    str name, value;
} kube_variable;

/* A program that hands out credentials. */
typedef struct kube_exec {
    str api_version;
    str command; /* empty: none */
    str *arguments;
    size_t argument_count;
    kube_variable *variables;
    size_t variable_count;
    bool told_cluster; /* it wants to know which cluster it is for */
    bool never_asks;   /* people, on a terminal */
    str config;        /* what the cluster's entry has for it; JSON, empty: nothing */
} kube_exec;

/* Texts are zero-terminated and empty where nothing is said. Of data and file at most one is set,
 * data first. */
typedef struct kube_access {
    str context;
    str server; /* https://host:port, without a slash at the end */
    str namespace;
    str ca_data, ca_file; /* PEM */
    str tls_server_name;
    str proxy_url;
    bool insecure; /* the server's certificate is not looked at */
    str certificate_data, certificate_file, key_data, key_file;
    str token, token_file; /* the file is read again as it changes, and goes before the token */
    str user, password;
    str impersonate, impersonate_uid;
    str *impersonate_groups;
    size_t impersonate_group_count;
    kube_exec exec;
} kube_access;

/* How to find it. */
typedef struct kube_where {
    str files; /* separated by ":", as in $KUBECONFIG; empty: home/.kube/config */
    str home;
    str context;     /* empty: the current one */
    str cluster;     /* empty: the context's */
    str user;        /* empty: the context's */
    str server;      /* if there are no files: they need not be, then */
    bool in_cluster; /* use the pod's service account if there are no files */
    str host, port;  /* $KUBERNETES_SERVICE_HOST and _PORT */
    str account;     /* folder of the service account; empty: where kubelets put it */
} kube_where;

/* From the environment; explicit: --kubeconfig, may be empty. */
kube_where kube_where_of_environment(str explicit_file, str context);
/* Texts are in a. */
bool kubeconfig_read(const kube_where *where, arena *a, kube_access *ret, err *error);

#endif
