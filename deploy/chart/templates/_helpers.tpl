{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- define "drover.image" -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag }}{{ end }}
{{- end }}

{{- /* The number in an address such as ":8080". */}}
{{- define "drover.port" -}}
{{ regexFind "[0-9]+$" . }}
{{- end }}

{{- define "drover.account" -}}
subjects:
  - kind: ServiceAccount
    name: drover
    namespace: {{ .Release.Namespace }}
{{- end }}

{{- /* Values of Skyhook's chart that have no meaning here, and why. NOTES.txt names those that are
set; values.schema.json accepts them. */}}
{{- define "drover.ignored" -}}
cleanup: helm uninstall leaves Skyhooks and policies where they are
controllerManager.kubeRbacProxy: there is none; /metrics is plain HTTP
controllerManager.manager.env.logLevel: there is one level
controllerManager.manager.env.pauseImage: pods of packages end by themselves
estimatedNodeCount: set controllerManager.manager.resources
estimatedPackageCount: set controllerManager.manager.resources
kubernetesClusterDomain: nothing is called by such a name
metrics: /metrics asks for no account
metricsService.ports: the port is that of controllerManager.manager.env.metricsPort
webhook: the definitions' own rules refuse what webhooks refused
webhookService: there are no webhooks
{{- end }}
