{{/* What every pod of the chart has in its spec, by the values of a component or of defaults: dict root, c. */}}
{{- define "lectern.pod" -}}
enableServiceLinks: false # they would inject ENTRIES_PORT and its like
securityContext:
  {{- include "lectern.withoutNulls" .c.podSecurityContext | nindent 2 }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
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

{{/* A map without what was set to null, which takes a value of the chart away: a user that the platform assigns. */}}
{{- define "lectern.withoutNulls" -}}
{{- $kept := dict -}}
{{- range $key, $value := . }}{{ if not (kindIs "invalid" $value) }}{{ $_ := set $kept $key $value }}{{ end }}{{ end -}}
{{- toYaml $kept -}}
{{- end }}
