{{/* Nine tenths of a memory quantity, for GOMEMLIMIT: the rest is for memory that Go does not count. */}}
{{- define "lectern.goMemLimit" -}}
{{- $text := ternary (printf "%.0f" (float64 (. | toString))) (toString .) (kindIs "float64" .) -}}
{{- $number := regexFind "^[0-9]+([.][0-9]+)?" $text -}}
{{- $factor := index (dict "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776) (trimPrefix $number $text) -}}
{{- if or (not $number) (not $factor) }}{{ fail (printf "limits.memory: %q is not understood; allowed: such as 256Mi or 1Gi" $text) }}{{ end -}}
{{- printf "%dKiB" (int64 (floor (divf (mulf (float64 $number) (float64 $factor) 0.9) 1024.0))) -}}
{{- end }}

{{/* A CPU quantity, rounded up, for GOMAXPROCS. */}}
{{- define "lectern.goMaxProcs" -}}
{{- $text := toString . -}}
{{- if hasSuffix "m" $text -}}
{{- int (ceil (divf (float64 (trimSuffix "m" $text)) 1000.0)) -}}
{{- else -}}
{{- int (ceil (float64 $text)) -}}
{{- end -}}
{{- end }}

{{/* Resources without values that are null, which remove a limit of defaults. */}}
{{- define "lectern.resources" -}}
{{- $kept := dict -}}
{{- range $kind, $amounts := . -}}
{{- if kindIs "map" $amounts -}}
{{- $some := dict -}}
{{- range $name, $amount := $amounts }}{{ if not (kindIs "invalid" $amount) }}{{ $_ := set $some $name $amount }}{{ end }}{{ end -}}
{{- $_ := set $kept $kind $some -}}
{{- else if $amounts -}}
{{- $_ := set $kept $kind $amounts -}}
{{- end -}}
{{- end -}}
{{- toYaml $kept -}}
{{- end }}

{{/* One variable from a Secret: dict name, secret, key (if not the variable's name), optional. */}}
{{- define "lectern.fromSecret" -}}
- name: {{ .name }}
  valueFrom:
    secretKeyRef:
      name: {{ .secret }}
      key: {{ .key | default .name }}
      {{- if .optional }}
      optional: true
      {{- end }}
{{- end }}

{{/* The URL of a server from a Secret, and the file of its password if the Secret has it as a key: dict name (of the variables,
     without _URL), secret, passwordKeys, optional. */}}
{{- define "lectern.fromServer" -}}
{{- include "lectern.fromSecret" (dict "name" (printf "%s_URL" .name) "secret" .secret "optional" .optional) }}
{{- if has (printf "%s_PASSWORD" .name) .passwordKeys }}
- name: {{ .name }}_PASSWORD_FILE
  value: /etc/lectern/passwords/{{ .secret }}/{{ .name }}_PASSWORD
{{- end }}
{{- end }}

{{/* The volume of the password files that an environment names, or nothing: dict name, env. Kubernetes updates its files, as it
     would not with subPath. */}}
{{- define "lectern.passwordsVolume" -}}
{{- $sources := list -}}
{{- range .env | fromYamlArray -}}
{{- if hasPrefix "/etc/lectern/passwords/" (toString .value) -}}
{{- $path := trimPrefix "/etc/lectern/passwords/" .value -}}
{{- $sources = append $sources (dict "secret" (dict "name" (dir $path) "items" (list (dict "key" (base $path) "path" $path)))) -}}
{{- end -}}
{{- end -}}
{{- with $sources -}}
name: {{ $.name }}
projected:
  defaultMode: 0440
  sources:
    {{- toYaml . | nindent 4 }}
{{- end -}}
{{- end }}

{{/*
TRUSTED_PROXIES of a component: dict root, name, c. By default nobody is trusted where clients may reach the Service without
a gateway: their address may be replaced by a private one on the way, and any header of theirs would be believed.
*/}}
{{- define "lectern.trustedProxies" -}}
{{- $trusted := .root.Values.trustedProxies -}}
{{- if or (eq .name "internal") (include "lectern.behindEdge" .) -}}
{{- else if kindIs "slice" $trusted -}}
{{- join "," $trusted -}}
{{- else if not (and (eq $trusted "auto") (has .c.service.type (list "LoadBalancer" "NodePort"))) -}}
private
{{- end -}}
{{- end }}

{{/* Variables without secrets, as a YAML map: those of the chart's values, overridden by config. */}}
{{- define "lectern.plainEnvironment" -}}
{{- $v := .root.Values -}}
{{- $env := dict "LOG_LEVEL" $v.telemetry.logLevel "LOG_FORMAT" $v.telemetry.logFormat -}}
{{- if $v.caBundle.configMap }}{{ $_ := set $env "CA_FILE" "/etc/lectern/ca/ca.crt" }}{{ end -}}
{{- with include "lectern.otlpEndpoint" .root -}}
{{- $_ := set $env "OTEL_EXPORTER_OTLP_ENDPOINT" . -}}
{{- $_ := set $env "OTEL_EXPORTER_OTLP_PROTOCOL" $v.telemetry.otlpProtocol -}}
{{- $_ := set $env "OTEL_TRACES_SAMPLER" $v.telemetry.tracesSampler -}}
{{- with $v.telemetry.tracesSamplerArg }}{{ $_ := set $env "OTEL_TRACES_SAMPLER_ARG" . }}{{ end -}}
{{- end -}}
{{- if ne .name "operator" -}}
{{- $_ := set $env "DRAIN_DELAY" (printf "%ds" (int .c.drain.delaySeconds)) -}}
{{- $_ := set $env "DRAIN_TIMEOUT" (printf "%ds" (int .c.drain.timeoutSeconds)) -}}
{{- with $v.publicUrl }}{{ $_ := set $env "PUBLIC_URL" . }}{{ end -}}
{{- with include "lectern.trustedProxies" . }}{{ $_ := set $env "TRUSTED_PROXIES" . }}{{ end -}}
{{- end -}}
{{- if eq .name "edge" -}}
{{- $services := list -}}
{{- range $name := splitList " " (include "lectern.services" .root) -}}
{{- $c := mergeOverwrite (deepCopy $v.defaults) (deepCopy (index $v $name)) -}}
{{- if $c.enabled }}{{ $services = append $services (printf "%s=%s-%s:%d" $name (include "lectern.fullname" $.root) $name (int $c.service.port)) }}{{ end -}}
{{- end -}}
{{- $_ := set $env "EDGE_SERVICES" (join "," $services) -}}
{{- with $v.routing.exclude }}{{ $_ := set $env "EDGE_EXCLUDE" (join "," .) }}{{ end -}}
{{- end -}}
{{- if eq .name "internal" -}}
{{- $services := list -}}
{{- range $name := splitList " " (include "lectern.dataServices" .root) -}}
{{- $c := mergeOverwrite (deepCopy $v.defaults) (deepCopy (index $v $name)) -}}
{{- if $c.enabled }}{{ $services = append $services (printf "%s=%s-%s:%d" $name (include "lectern.fullname" $.root) $name (int $c.service.internalPort)) }}{{ end -}}
{{- end -}}
{{- $_ := set $env "EDGE_PATHS" "internal" -}}
{{- $_ := set $env "EDGE_SERVICES" (join "," $services) -}}
{{- $_ := set $env "EDGE_ANSWER_TIMEOUT" "10m" -}}
{{- end -}}
{{- if and (eq .name "proxy") $v.proxy.manifests.existingSecret -}}
{{- $_ := set $env "PROXY_MANIFESTS" "/etc/lectern/manifests" -}}
{{- end -}}
{{- if include "lectern.asksAPIServer" . -}}
{{- with include "lectern.watchedNamespaces" .root | fromJsonArray }}{{ $_ := set $env "WATCH_NAMESPACES" (join "," .) }}{{ end -}}
{{- $_ := set $env "UNDECLARED_PROJECTS" $v.undeclaredProjects -}}
{{- $_ := set $env "PROXY_VALUES" (printf "%s/%s" (include "lectern.namespace" .root) (include "lectern.proxyValues" .root)) -}}
{{- end -}}
{{- if include "lectern.verifiesTokens" . }}{{ $_ := set $env "TOKEN_ISSUERS" (include "lectern.tokenIssuers" .root) }}{{ end -}}
{{- if eq .name "region" -}}
{{- with include "lectern.internalIdentities" .root }}{{ $_ := set $env "INTERNAL_IDENTITIES" . }}{{ end -}}
{{- end -}}
{{- if and (eq .name "console") .c.signIn.issuer -}}
{{- $_ := set $env "CONSOLE_ISSUER" .c.signIn.issuer -}}
{{- $_ := set $env "CONSOLE_CLIENT_ID" (required "console.signIn.issuer is set and console.signIn.clientId is empty; allowed: the id of the provider's public client" .c.signIn.clientId) -}}
{{- with .c.signIn.scopes }}{{ $_ := set $env "CONSOLE_SCOPES" . }}{{ end -}}
{{- with .c.signIn.audience }}{{ $_ := set $env "CONSOLE_AUDIENCE" . }}{{ end -}}
{{- with .c.signIn.origins }}{{ $_ := set $env "CONSOLE_ISSUER_ORIGINS" (join "," .) }}{{ end -}}
{{- end -}}
{{- if eq .name "operator" -}}
{{- with include "lectern.clusterIssuer" .root }}{{ $_ := set $env "CLUSTER_ISSUER" . }}{{ end -}}
{{- $_ := set $env "LEASE_NAME" (include "lectern.lease" .root) -}}
{{- $region := mergeOverwrite (deepCopy $v.defaults) (deepCopy $v.region) -}}
{{- if $region.enabled }}{{ $_ := set $env "REGION_INTERNAL_URL" (printf "http://%s-region:%d" (include "lectern.fullname" .root) (int $region.service.internalPort)) }}{{ end -}}
{{- with $v.publicUrl }}{{ $_ := set $env "PUBLIC_URL" . }}{{ end -}}
{{- if .c.fetchCredentials -}}
{{- $_ := set $env "FETCH_CREDENTIALS" "true" -}}
{{- range $name, $value := $v.proxy.config }}{{ if has $name (list "PROXY_ALLOWED_RANGES" "PROXY_DENIED_RANGES" "PROXY_NAT64_PREFIXES") }}{{ $_ := set $env $name (toString $value) }}{{ end }}{{ end -}}
{{- end -}}
{{- end -}}
{{- range $name, $value := .c.config }}{{ $_ := set $env $name (toString $value) }}{{ end -}}
{{- toYaml $env -}}
{{- end }}

{{/* Go's own limits, from the container's. */}}
{{- define "lectern.goEnvironment" -}}
{{- $limits := .c.resources.limits | default dict -}}
{{- with $limits.memory }}
- name: GOMEMLIMIT
  value: {{ include "lectern.goMemLimit" . }}
{{- end }}
{{- with $limits.cpu }}
- name: GOMAXPROCS
  value: {{ include "lectern.goMaxProcs" . | quote }}
{{- end }}
{{- end }}

{{/* The environment of a component's container. */}}
{{- define "lectern.environment" -}}
{{- $auth := include "lectern.secret.auth" .root -}}
{{- $keys := include "lectern.secret.keys" .root -}}
{{- $v := .root.Values -}}
{{- $isService := not (has .name (list "proxy" "console" "edge" "internal" "operator")) -}}
{{- include "lectern.goEnvironment" . }}
{{- range $name, $value := include "lectern.plainEnvironment" . | fromYaml }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- if $isService }}
{{- $database := include "lectern.secret.database" . }}
{{ include "lectern.fromServer" (dict "name" "DATABASE" "secret" $database "passwordKeys" .c.database.passwordKeys) }}
{{ include "lectern.fromServer" (dict "name" "READ_DATABASE" "secret" $database "passwordKeys" .c.database.passwordKeys "optional" true) }}
{{ include "lectern.fromServer" (dict "name" "INGEST_DATABASE" "secret" $database "passwordKeys" .c.database.passwordKeys "optional" true) }}
{{ include "lectern.fromServer" (dict "name" "REMOVE_DATABASE" "secret" $database "passwordKeys" .c.database.passwordKeys "optional" true) }}
{{ include "lectern.fromSecret" (dict "name" "INGEST_API_KEYS" "secret" $keys "optional" true) }}
{{ include "lectern.fromSecret" (dict "name" "ADMIN_API_KEYS" "secret" $keys "optional" true) }}
{{- end }}
{{- if include "lectern.knowsEdgeKey" . }}
{{ include "lectern.fromSecret" (dict "name" "EDGE_KEYS" "secret" $keys) }}
{{- end }}
{{- if eq .name "region" }}
{{ include "lectern.fromSecret" (dict "name" "INTERNAL_API_KEYS" "secret" $keys "optional" true) }}
{{ include "lectern.fromServer" (dict "name" "AUTH_ADMIN_DATABASE" "secret" $auth "passwordKeys" $v.auth.passwordKeys "optional" true) }}
{{- end }}
{{- if eq .name "operator" }}
{{- if (mergeOverwrite (deepCopy $v.defaults) (deepCopy $v.region)).enabled }}
{{ include "lectern.fromSecret" (dict "name" "INGEST_API_KEYS" "secret" $keys) }}
{{- end }}
{{ include "lectern.fromServer" (dict "name" "AUTH_ADMIN_DATABASE" "secret" $auth "passwordKeys" $v.auth.passwordKeys) }}
{{- else if include "lectern.usesStores" . }}
{{ include "lectern.fromServer" (dict "name" "AUTH_DATABASE" "secret" $auth "passwordKeys" $v.auth.passwordKeys "optional" (eq .name "proxy")) }}
{{- end }}
{{- if and $v.redis.enabled (include "lectern.usesStores" .) }}
{{ include "lectern.fromServer" (dict "name" "REDIS" "secret" (include "lectern.secret.redis" .root) "passwordKeys" $v.redis.passwordKeys) }}
{{- if $v.redis.requireTLS }}
- name: REDIS_REQUIRE_TLS
  value: "true"
{{- end }}
{{- end }}
{{- with .c.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The environment of a migration: the owners' URLs, and the others' for the names of their roles. The operator has
     only the key database. */}}
{{- define "lectern.migrationEnvironment" -}}
{{- $auth := include "lectern.secret.auth" .root -}}
{{- $database := include "lectern.secret.database" . -}}
{{- include "lectern.goEnvironment" . }}
- name: LOG_LEVEL
  value: {{ .root.Values.telemetry.logLevel | quote }}
- name: LOG_FORMAT
  value: {{ .root.Values.telemetry.logFormat | quote }}
{{- if .root.Values.caBundle.configMap }}
- name: CA_FILE
  value: /etc/lectern/ca/ca.crt
{{- end }}
{{- if ne .name "operator" }}
{{ include "lectern.fromServer" (dict "name" "MIGRATE_DATABASE" "secret" $database "passwordKeys" .c.database.passwordKeys) }}
{{ include "lectern.fromSecret" (dict "name" "DATABASE_URL" "secret" $database) }}
{{ include "lectern.fromSecret" (dict "name" "INGEST_DATABASE_URL" "secret" $database "optional" true) }}
{{ include "lectern.fromSecret" (dict "name" "REMOVE_DATABASE_URL" "secret" $database "optional" true) }}
{{- end }}
{{ include "lectern.fromServer" (dict "name" "AUTH_MIGRATE_DATABASE" "secret" $auth "passwordKeys" .root.Values.auth.passwordKeys "optional" true) }}
{{ include "lectern.fromSecret" (dict "name" "AUTH_ADMIN_DATABASE_URL" "secret" $auth "optional" true) }}
{{ include "lectern.fromSecret" (dict "name" "AUTH_DATABASE_URL" "secret" $auth) }}
{{- with .c.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}
