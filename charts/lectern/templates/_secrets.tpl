{{/* The keys that pods read from Secrets, as JSON, by Secret. "must" has the required keys, and "may" the optional ones, each
     with a shell word for its value; "later" has the required ones that an APIKey object makes once the operator runs. They
     are read from the pods' specs. */}}
{{- define "lectern.secretsRead" -}}
{{- $v := .Values -}}
{{- $keys := include "lectern.secret.keys" . -}}
{{- $pods := list -}}
{{- range $name := splitList " " (include "lectern.components" .) -}}
{{- $c := mergeOverwrite (deepCopy $v.defaults) (deepCopy (index $v $name)) -}}
{{- $scope := dict "root" $ "name" $name "c" $c -}}
{{- if $c.enabled }}{{ $pods = append $pods (dict "name" $name "database" (include "lectern.secret.database" $scope) "spec" (include "lectern.deployment" $scope | fromYaml).spec.template.spec) }}{{ end -}}
{{- end -}}
{{- range $copy, $_ := $v.sync.copies -}}
{{- $c := include "lectern.sync.values" (dict "root" $ "copy" $copy) | fromJson -}}
{{- $pods = append $pods (dict "name" (printf "sync-%s" $copy) "database" "" "spec" (include "lectern.sync.deployment" (dict "root" $ "name" (printf "sync-%s" $copy) "c" $c) | fromYaml).spec.template.spec) -}}
{{- end -}}
{{- $read := dict -}}
{{- range $pod := $pods -}}
{{- $refs := list -}}
{{- range concat ($pod.spec.initContainers | default list) $pod.spec.containers -}}
{{- range $env := .env -}}
{{- with dig "valueFrom" "secretKeyRef" "" . }}{{ $refs = append $refs (merge (dict "variable" $env.name) .) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- range $pod.spec.volumes -}}
{{- range dig "projected" "sources" list . -}}
{{- with .secret }}{{ $refs = append $refs (dict "variable" "" "name" .name "key" (first .items).key) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- range $refs -}}
{{- $secret := index $read .name | default (dict "must" dict "may" dict) -}}
{{- $word := regexReplaceAll "[^A-Z0-9]+" (upper (ternary (printf "%s-%s" $pod.name .key) .key (or (eq .name $pod.database) (hasPrefix "sync-" $pod.name)))) "_" | printf "$%s" -}}
{{- if eq .name $keys }}{{ $word = ternary "ops=$(openssl rand -hex 32)" "$(openssl rand -hex 32)" (eq .key "ADMIN_API_KEYS") }}{{ end -}}
{{- if eq .variable "LECTERN_API_KEY" }}{{ $_ := set $secret "note" "or let an APIKey object make it" }}{{ $_ := set $secret "later" (list .key) }}{{ end -}}
{{- if .optional }}{{ $_ := set $secret.may .key $word }}{{ else }}{{ $_ := set $secret.must .key $word }}{{ end -}}
{{- $_ := set $read .name $secret -}}
{{- end -}}
{{- end -}}
{{- if $v.retention.enabled -}}
{{- $secret := index $read $keys | default (dict "must" dict "may" dict) -}}
{{- $_ := set $secret.must "ADMIN_API_KEYS" "ops=$(openssl rand -hex 32),retention=$RETENTION_KEY" -}}
{{- $_ := set $secret.must "RETENTION_ADMIN_API_KEY" "$RETENTION_KEY" -}}
{{- $_ := set $secret "note" "Begin with RETENTION_KEY=$(openssl rand -hex 32). ADMIN_API_KEYS must have this key, too" -}}
{{- $_ := set $read $keys $secret -}}
{{- end -}}
{{- toJson $read -}}
{{- end }}

{{/* The Secrets that the chart creates itself, as a JSON array: those of dev.enabled that no value names. */}}
{{- define "lectern.secretsMade" -}}
{{- $made := list -}}
{{- if .Values.dev.enabled -}}
{{- range list "entries" "embeddables" "experiments" "region" -}}
{{- $c := mergeOverwrite (deepCopy $.Values.defaults) (deepCopy (index $.Values .)) -}}
{{- if not $c.database.existingSecret }}{{ $made = append $made (include "lectern.secret.database" (dict "root" $ "name" . "c" $c)) }}{{ end -}}
{{- end -}}
{{- if not .Values.auth.existingSecret }}{{ $made = append $made (include "lectern.secret.auth" .) }}{{ end -}}
{{- if not .Values.redis.existingSecret }}{{ $made = append $made (include "lectern.secret.redis" .) }}{{ end -}}
{{- if not .Values.apiKeys.existingSecret }}{{ $made = append $made (include "lectern.secret.keys" .) }}{{ end -}}
{{- end -}}
{{- toJson $made -}}
{{- end }}

{{/* A command for each Secret that pods wait for, which creates it or adds its missing keys: dict root, later (whether to name
     those that an APIKey object makes, too). Nothing if none is missing, or if there is no cluster. */}}
{{- define "lectern.missingSecrets" -}}
{{- $root := .root -}}
{{- $later := .later -}}
{{- $namespace := (include "lectern.namespace" $root) -}}
{{- if include "lectern.hasCluster" $root -}}
{{- $made := include "lectern.secretsMade" $root | fromJsonArray -}}
{{- $auth := include "lectern.secret.auth" $root -}}
{{- $keys := include "lectern.secret.keys" $root -}}
{{- range $name, $secret := include "lectern.secretsRead" $root | fromJson -}}
{{- if not (has $name $made) -}}
{{- $found := include "lectern.lookup (set lookups=false to ask nothing)" (list $root "v1" "Secret" $namespace $name) | fromJson -}}
{{- $data := $found.data | default dict -}}
{{- $must := $secret.must -}}
{{- if and (eq $name $auth) (not $found) }}{{ $_ := set $must "AUTH_MIGRATE_DATABASE_URL" "$AUTH_MIGRATE_DATABASE_URL" }}{{ end -}}
{{- if not $later }}{{ range $secret.later }}{{ $_ := unset $must . }}{{ end }}{{ end -}}
{{- $missing := list -}}
{{- range $key, $word := $must }}{{ if not (hasKey $data $key) }}{{ $missing = append $missing $key }}{{ end }}{{ end -}}
{{- $may := list }}
{{- range $key, $_ := $secret.may }}{{ if not (hasKey $must $key) }}{{ $may = append $may $key }}{{ end }}{{ end }}
{{- if $missing }}
{{ with $secret.note }}
     # {{ . }}:
{{- end }}
{{- if $found }}
     kubectl -n {{ $namespace }} patch secret {{ $name }} --type=merge -p "{\"stringData\": {
{{- range $i, $key := $missing }}{{ if $i }}, {{ end }}\"{{ $key }}\": \"{{ index $must $key }}\"{{ end }}}}"
{{- else }}
     kubectl -n {{ $namespace }} create secret generic {{ $name }}
{{- range $missing }} \
       --from-literal={{ . }}="{{ index $must . }}"
{{- end }}
{{- if eq $name $keys }}{{ range $may }} \
       --from-literal={{ . }}="{{ index $secret.may . }}"
{{- end }}{{ else }}{{ with $may }}
     # also, if wanted: {{ join ", " . }}
{{- end }}{{ end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Fails if a Secret, or a key in one, is missing that pods need to start. Without a cluster, as in "helm template", none is. */}}
{{- define "lectern.refuseMissingSecrets" -}}
{{- if .Values.requireSecrets -}}
{{- with include "lectern.missingSecrets" (dict "root" . "later" false) -}}
{{- $namespace := (include "lectern.namespace" $) -}}
{{- $first := "" -}}
{{- /* A namespace has a ServiceAccount from its beginning. */ -}}
{{- if not (include "lectern.lookup (set lookups=false to ask nothing)" (list $ "v1" "ServiceAccount" $namespace "") | fromJson).items -}}
{{- $first = printf "kubectl create namespace %s\n\n     " $namespace -}}
{{- end -}}
{{- fail (printf "Secrets, or keys in them, are missing in the namespace %s, and nothing was changed. Run these commands with your own values, then try again. With requireSecrets=false, pods wait for them instead; with lookups=false, nothing is looked up.\n\n     %s%s\n"
  $namespace $first (trim .)) -}}
{{- end -}}
{{- end -}}
{{- end }}
