{{/* The common part of every pod spec, from the values of a component or of defaults: dict root, c. */}}
{{- define "lectern.pod" -}}
enableServiceLinks: false # they would inject ENTRIES_PORT and its like
securityContext:
  {{- include "lectern.withoutNulls" .c.podSecurityContext | nindent 2 }}
{{- $pull := list }}
{{- range concat (dig "imagePullSecrets" list (.root.Values.global | default dict)) .root.Values.imagePullSecrets }}
{{- $pull = append $pull (ternary (dict "name" .) . (kindIs "string" .)) }}
{{- end }}
{{- with $pull | uniq }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .c.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- if kindIs "bool" .c.hostUsers }}
hostUsers: {{ .c.hostUsers }}
{{- end }}
{{- with .c.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- range $field := list "nodeSelector" "tolerations" "affinity" "hostAliases" "dnsConfig" }}
{{- with index $.c $field }}
{{ $field }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- with .c.dnsPolicy }}
dnsPolicy: {{ . }}
{{- end }}
{{- end }}

{{/* The labels and annotations of a pod template, without the chart's version, so that the pods are not replaced if nothing
     else changes: dict root, name, c, container (of which kubectl prints logs). */}}
{{- define "lectern.podMetadata" -}}
labels:
  {{- toYaml (omit (include "lectern.labels" (dict "root" .root "name" .name "extra" .c.podLabels) | fromYaml) "helm.sh/chart") | nindent 2 }}
annotations:
  {{- toYaml (mergeOverwrite (dict "kubectl.kubernetes.io/default-container" .container) (deepCopy .root.Values.commonAnnotations) .c.podAnnotations) | nindent 2 }}
{{- end }}

{{/* A map without values that are null, which remove a value of the chart, such as a user that the platform assigns. */}}
{{- define "lectern.withoutNulls" -}}
{{- $kept := dict -}}
{{- range $key, $value := . }}{{ if not (kindIs "invalid" $value) }}{{ $_ := set $kept $key $value }}{{ end }}{{ end -}}
{{- toYaml $kept -}}
{{- end }}
