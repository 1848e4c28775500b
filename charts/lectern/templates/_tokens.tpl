{{/* Whether a component verifies tokens: dict root, name. Returns "true", or nothing. */}}
{{- define "lectern.verifiesTokens" -}}
{{- $t := .root.Values.tokens -}}
{{- if and (or $t.issuers $t.cluster.enabled) (has .name (splitList " " (printf "%s proxy" (include "lectern.dataServices" .root)))) -}}
true
{{- end -}}
{{- end }}

{{/* The API server's issuer, or nothing without tokens.cluster.enabled. */}}
{{- define "lectern.clusterIssuer" -}}
{{- with .Values.tokens.cluster -}}
{{- if .enabled -}}
{{- .issuer | required "tokens.cluster.enabled is true and tokens.cluster.issuer is empty; allowed: the issuer of the API server, which this command prints: kubectl get --raw /.well-known/openid-configuration" -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* TOKEN_ISSUERS: the issuers of the values, and the API server. */}}
{{- define "lectern.tokenIssuers" -}}
{{- $issuers := list -}}
{{- range $i, $issuer := .Values.tokens.issuers -}}
{{- $entry := pick $issuer "url" "audiences" "groupsClaim" -}}
{{- if $issuer.ca }}{{ $_ := set $entry "caFile" (printf "/etc/lectern/issuers/%d/ca.crt" $i) }}{{ end -}}
{{- $issuers = append $issuers $entry -}}
{{- end -}}
{{- with include "lectern.clusterIssuer" . -}}
{{- $issuers = append $issuers (dict "url" . "audiences" $.Values.tokens.cluster.audiences "caFile" "/etc/lectern/issuers/cluster/ca.crt" "tokenFile" "/etc/lectern/issuers/cluster/token") -}}
{{- end -}}
{{- $issuers | toJson -}}
{{- end }}

{{/* INTERNAL_IDENTITIES, or nothing. A ServiceAccount's subject is the one that the API server gives it. */}}
{{- define "lectern.internalIdentities" -}}
{{- $identities := list -}}
{{- range .Values.tokens.internalIdentities -}}
{{- $identity := . -}}
{{- if .serviceAccount -}}
{{- $issuer := include "lectern.clusterIssuer" $ | required "tokens.internalIdentities names a ServiceAccount and tokens.cluster.enabled is false; allowed: tokens.cluster.enabled=true, or an issuer and a subject" -}}
{{- $identity = dict "issuer" $issuer "subject" (printf "system:serviceaccount:%s:%s" .namespace .serviceAccount) -}}
{{- end -}}
{{- $identities = append $identities $identity -}}
{{- end -}}
{{- with $identities }}{{ toJson . }}{{ end -}}
{{- end }}

{{/* The volume of caBundle, or nothing. */}}
{{- define "lectern.caVolume" -}}
{{- with .Values.caBundle -}}
{{- if .configMap -}}
name: ca-bundle
configMap:
  name: {{ .configMap }}
  defaultMode: 0440
  items: [{key: {{ .key }}, path: ca.crt}]
{{- end -}}
{{- end -}}
{{- end }}

{{/* The volume of a component's files for its issuers, or nothing: dict root, name. It has the CAs, and a token of the pod's own
     ServiceAccount, with which the pod reads the API server's keys and nothing else of the cluster. */}}
{{- define "lectern.issuersVolume" -}}
{{- $sources := list -}}
{{- if include "lectern.verifiesTokens" . -}}
{{- range $i, $issuer := .root.Values.tokens.issuers -}}
{{- with $issuer.ca -}}
{{- $kind := ternary "secret" "configMap" (hasKey . "secret") -}}
{{- $sources = append $sources (dict $kind (dict "name" (get . $kind) "items" (list (dict "key" (.key | default "ca.crt") "path" (printf "%d/ca.crt" $i))))) -}}
{{- end -}}
{{- end -}}
{{- if include "lectern.clusterIssuer" .root -}}
{{- $sources = append $sources (dict "serviceAccountToken" (dict "path" "cluster/token")) -}}
{{- $sources = append $sources (dict "configMap" (dict "name" "kube-root-ca.crt" "items" (list (dict "key" "ca.crt" "path" "cluster/ca.crt")))) -}}
{{- end -}}
{{- end -}}
{{- with $sources -}}
name: issuers
projected:
  defaultMode: 0440
  sources:
    {{- toYaml . | nindent 4 }}
{{- end -}}
{{- end }}
