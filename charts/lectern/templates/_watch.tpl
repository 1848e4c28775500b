{{/* The watched namespaces, as a JSON array; an empty one is all. */}}
{{- define "lectern.watchedNamespaces" -}}
{{- if and .Values.watchAllNamespaces .Values.watchNamespaces -}}
{{- fail (printf "watchAllNamespaces is true and watchNamespaces names %s; allowed: one of the two" (join ", " .Values.watchNamespaces)) -}}
{{- end -}}
{{- if .Values.watchAllNamespaces -}}
[]
{{- else -}}
{{- .Values.watchNamespaces | default (list (include "lectern.namespace" .)) | uniq | toJson -}}
{{- end -}}
{{- end }}

{{/* The Secret with the values of all Credentials, in the release's namespace. */}}
{{- define "lectern.proxyValues" -}}
{{- include "lectern.fullname" . }}-proxy-values
{{- end }}

{{/* The namespaces of the objects and the watched ones that do not exist or are being deleted, as a JSON array. Without a
     cluster, as in "helm template", none. An install fails if there are any; an upgrade makes no roles in them. The release's
     own may be made by --create-namespace, which does not make namespaceOverride. */}}
{{- define "lectern.missingNamespaces" -}}
{{- $missing := list -}}
{{- range $name := without (append (include "lectern.watchedNamespaces" . | fromJsonArray) (include "lectern.namespace" .) | uniq) .Release.Namespace -}}
{{- $found := include "lectern.lookup (set lookups=false to ask nothing)" (list $ "v1" "Namespace" "" $name) | fromJson -}}
{{- if and (or (not $found) (dig "metadata" "deletionTimestamp" "" $found)) (include "lectern.hasCluster" $) }}{{ $missing = append $missing $name }}{{ end -}}
{{- end -}}
{{- if and $missing .Release.IsInstall -}}
{{- fail (printf "namespaceOverride or watchNamespaces names namespaces that do not exist: %s; make them first, such as by kubectl create namespace %s. With lookups=false, they are not looked up" (join ", " $missing) (first $missing)) -}}
{{- end -}}
{{- $missing | toJson -}}
{{- end }}

{{/* The name of an object without a namespace: dict root, name. It has the release's namespace, so that releases of the same
     name in two namespaces do not collide. */}}
{{- define "lectern.clusterName" -}}
{{- printf "%s:%s" (include "lectern.namespace" .root) .name -}}
{{- end }}

{{/* The namespaces that the release watches in the cluster now, as a JSON array; an empty one is all. Nothing if there
     is no such release. */}}
{{- define "lectern.watchedBefore" -}}
{{- $found := "" -}}
{{- range $name := list "operator" "proxy" -}}
{{- $deployment := include "lectern.lookup (set lookups=false to ask nothing)" (list $ "apps/v1" "Deployment" (include "lectern.namespace" $) (printf "%s-%s" (include "lectern.fullname" $) $name)) | fromJson -}}
{{- range ($deployment.spec | default dict).template | default dict | dig "spec" "containers" list -}}
{{- if eq .name $name -}}
{{- $found = "[]" -}}
{{- range .env -}}
{{- if eq .name "WATCH_NAMESPACES" }}{{ $found = splitList "," (.value | default "") | toJson }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $found -}}
{{- end }}

{{/* Fails if an upgrade would stop watching a namespace with objects of Lectern. Their keys could no longer be revoked, and
     their endpoints would no longer apply. */}}
{{- define "lectern.refuseUnwatching" -}}
{{- $watched := include "lectern.watchedNamespaces" . | fromJsonArray -}}
{{- $before := include "lectern.watchedBefore" . -}}
{{- if and .Release.IsUpgrade $before $watched (.Capabilities.APIVersions.Has "lectern.dev/v1alpha1") -}}
{{- $left := list -}}
{{- range $namespace := $before | fromJsonArray | default (list "") -}}
{{- if not (has $namespace $watched) -}}
{{- range $kind := list "Project" "APIKey" "Credential" "ProxyEndpoint" -}}
{{- range (include "lectern.lookup (set lookups=false to ask nothing)" (list $ "lectern.dev/v1alpha1" $kind $namespace "") | fromJson).items -}}
{{- if not (has .metadata.namespace $watched) }}{{ $left = append $left .metadata.namespace }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with $left | uniq | sortAlpha -}}
{{- fail (printf "this upgrade would stop watching namespaces that hold objects of lectern.dev: %s; set watchNamespaces={%s} or watchAllNamespaces=true, or delete those objects first. With lookups=false, objects are not looked up"
  (join ", " .) (join "," (concat $watched . | uniq))) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* A role and its binding to a component's account: dict root, name, c, namespace (empty: the whole cluster), object (the
     end of its name), rules, annotations. */}}
{{- define "lectern.roleAndBinding" -}}
{{- $kind := ternary "Role" "ClusterRole" (ne .namespace "") -}}
{{- $name := printf "%s-%s%s" (include "lectern.fullname" .root) .name .object }}
{{- if not .namespace }}{{ $name = include "lectern.clusterName" (dict "root" .root "name" $name) }}{{ end }}
{{- range $part := list $kind (printf "%sBinding" $kind) }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $part }}
metadata:
  name: {{ $name }}
  {{- with $.namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "lectern.labels" (dict "root" $.root "name" $.name) | nindent 4 }}
  {{- with mergeOverwrite (deepCopy $.root.Values.commonAnnotations) ($.annotations | default dict) }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- if eq $part $kind }}
rules:
  {{- toYaml $.rules | nindent 2 }}
{{- else }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ include "lectern.serviceAccount" $ }}
    namespace: {{ include "lectern.namespace" $.root }}
{{- end }}
{{- end }}
{{- end }}
