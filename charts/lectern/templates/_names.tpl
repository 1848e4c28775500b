{{/* The components, in the order of the output. */}}
{{- define "lectern.components" -}}
entries embeddables experiments region proxy console {{ if include "lectern.edge" . }}edge {{ end }}internal operator
{{- end }}

{{/* The components that the internal address routes to. */}}
{{- define "lectern.dataServices" -}}
entries embeddables experiments region
{{- end }}

{{/* Whether a component needs a key of the edge: dict root, name. Returns "true", or nothing. */}}
{{- define "lectern.knowsEdgeKey" -}}
{{- $internal := mergeOverwrite (deepCopy .root.Values.defaults) (deepCopy .root.Values.internal) -}}
{{- if or (has .name (list "edge" "internal")) (and (ne .name "operator") (include "lectern.edge" .root)) (and $internal.enabled (has .name (splitList " " (include "lectern.dataServices" .root)))) -}}
true
{{- end -}}
{{- end }}

{{/* The components that the edge routes to, and that know its key. */}}
{{- define "lectern.services" -}}
entries embeddables experiments region proxy console
{{- end }}

{{/* Whether the edge is installed: in mode edge, and in mode gateway if edge.enabled is set. Returns "true", or nothing. */}}
{{- define "lectern.edge" -}}
{{- $c := mergeOverwrite (deepCopy .Values.defaults) (deepCopy .Values.edge) -}}
{{- if and $c.enabled (or (eq .Values.routing.mode "edge") (hasKey .Values.edge "enabled")) -}}
true
{{- end -}}
{{- end }}

{{/* Whether only the edge sends requests to a component: dict root, name. Returns "true", or nothing. */}}
{{- define "lectern.behindEdge" -}}
{{- $v := .root.Values -}}
{{- if and (eq $v.routing.mode "edge") (include "lectern.edge" .root) (has .name (splitList " " (include "lectern.services" .root))) -}}
{{- if not (and (eq .name "proxy") $v.routing.proxy.hosts) -}}
true
{{- end -}}
{{- end -}}
{{- end }}

{{/* The namespace of the objects. */}}
{{- define "lectern.namespace" -}}
{{ .Values.namespaceOverride | default .Release.Namespace }}
{{- end }}

{{/* The beginning of all names of objects, short enough for the longest ending. */}}
{{- define "lectern.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{/* Labels of every object: dict root, name (of the component, if it is of one). */}}
{{- define "lectern.labels" -}}
{{- $own := dict
  "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-")
  "app.kubernetes.io/version" (.root.Chart.AppVersion | replace "+" "_" | trunc 63)
  "app.kubernetes.io/managed-by" .root.Release.Service
  "app.kubernetes.io/part-of" "lectern" -}}
{{- toYaml (merge (include "lectern.selector" . | fromYaml) $own .root.Values.commonLabels (.extra | default dict)) -}}
{{- end }}

{{/* The selector labels of a component's pods; they never change. */}}
{{- define "lectern.selector" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride | trunc 63 }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- with .name }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end }}

{{/* The metadata of an object: dict root, name, object (its name), labels, annotations. */}}
{{- define "lectern.metadata" -}}
name: {{ .object }}
namespace: {{ .namespace | default (include "lectern.namespace" .root) }}
labels:
  {{- include "lectern.labels" (dict "root" .root "name" .name "extra" .labels) | nindent 2 }}
{{- with mergeOverwrite (deepCopy .root.Values.commonAnnotations) (.annotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* A full image reference: dict root, image. A repository that names its registry is unchanged; another one is below
     image.registry, which is then required. A repository with a digest is the whole reference. */}}
{{- define "lectern.image" -}}
{{- $repository := required "an image has no repository" .image.repository -}}
{{- if not (regexMatch "^(localhost|[^/]*[.:][^/]*)/" $repository) -}}
{{- $registry := dig "imageRegistry" "" (.root.Values.global | default dict) | default .root.Values.image.registry -}}
{{- if not $registry -}}
{{- fail (printf "the image %q names no registry, and image.registry is empty; allowed: image.registry or global.imageRegistry, such as registry.example.com/me, or a repository with its registry for each component, as scripts/images prints them" $repository) -}}
{{- end -}}
{{- $repository = printf "%s/%s" (trimSuffix "/" $registry) $repository -}}
{{- end -}}
{{- if contains "@" $repository -}}
{{- $repository -}}
{{- else if .image.digest -}}
{{- printf "%s@%s" $repository .image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (.image.tag | default .tag | default .root.Values.image.tag | default .root.Chart.AppVersion) -}}
{{- end -}}
{{- end }}

{{/* Names of Secrets. */}}
{{- define "lectern.secret.auth" -}}
{{ .Values.auth.existingSecret | default (printf "%s-auth" (include "lectern.fullname" .)) }}
{{- end }}
{{- define "lectern.secret.redis" -}}
{{ .Values.redis.existingSecret | default (printf "%s-redis" (include "lectern.fullname" .)) }}
{{- end }}
{{- define "lectern.secret.keys" -}}
{{ .Values.apiKeys.existingSecret | default (printf "%s-keys" (include "lectern.fullname" .)) }}
{{- end }}
{{- define "lectern.secret.database" -}}
{{ .c.database.existingSecret | default (printf "%s-%s-database" (include "lectern.fullname" .root) .name) }}
{{- end }}

{{/* The operators' Lease. */}}
{{- define "lectern.lease" -}}
{{- include "lectern.fullname" . }}-operator
{{- end }}

{{- define "lectern.serviceAccount" -}}
{{- $own := printf "%s-%s" (include "lectern.fullname" .root) .name -}}
{{- .c.serviceAccount.name | default (ternary $own "default" .c.serviceAccount.create) -}}
{{- end }}

{{/* The collector of traces. */}}
{{- define "lectern.otlpEndpoint" -}}
{{- if .Values.telemetry.otlpEndpoint -}}
{{ .Values.telemetry.otlpEndpoint }}
{{- else if .Values.dev.collector.enabled -}}
http://{{ include "lectern.fullname" . }}-dev-collector:{{ ternary 4317 4318 (eq .Values.telemetry.otlpProtocol "grpc") }}
{{- end -}}
{{- end }}

{{/* Whether a component uses Postgres and Redis: "true", or nothing. */}}
{{- define "lectern.usesStores" -}}
{{- if not (has .name (list "console" "edge" "internal")) -}}
true
{{- end -}}
{{- end }}

{{/* Whether a component uses the API server: "true", or nothing. */}}
{{- define "lectern.asksAPIServer" -}}
{{- if or (has .name (list "operator" "retention")) (and (eq .name "proxy") (not .root.Values.proxy.manifests.existingSecret)) -}}
true
{{- end -}}
{{- end }}
