{{/* Every question to the cluster: a list of the root, apiVersion, kind, namespace and name, as for lookup. As JSON; an empty
     object without an answer, without a cluster, and with lookups=false. An account that may not ask gets an error of Helm,
     which has the name of this template. */}}
{{- define "lectern.lookup (set lookups=false to ask nothing)" -}}
{{- if (first .).Values.lookups -}}
{{- lookup (index . 1) (index . 2) (index . 3) (index . 4) | toJson -}}
{{- else -}}
{}
{{- end -}}
{{- end }}

{{/* Whether there is a cluster to ask: "true", or nothing. Whoever installs may list the ServiceAccounts of the namespace. */}}
{{- define "lectern.hasCluster" -}}
{{- if include "lectern.lookup (set lookups=false to ask nothing)" (list . "v1" "ServiceAccount" (include "lectern.namespace" .) "") | fromJson -}}
true
{{- end -}}
{{- end }}

{{/* Fails if a value is missing that the chart always has: helm upgrade --reuse-values keeps the values of the version before,
     which lack new ones. A template would then fail without a reason, or leave a part of an object out. */}}
{{- define "lectern.refuseOldValues" -}}
{{- range $path := (.Files.Get "files/values.yaml" | fromYaml).values -}}
{{- $at := $.Values -}}
{{- range splitList "." $path -}}
{{- if not (hasKey $at .) -}}
{{- fail (printf "the value %s is missing. helm upgrade --reuse-values keeps the values of the chart before, which lack it; allowed: --reset-then-reuse-values, or --values with your file" $path) -}}
{{- end -}}
{{- $at = index $at . -}}
{{- end -}}
{{- end -}}
{{- end }}
