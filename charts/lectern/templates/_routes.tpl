{{/* The paths of one component that are routed, as a YAML list: dict root, name. */}}
{{- define "lectern.paths" -}}
{{- $exclude := .root.Values.routes.exclude -}}
{{- $paths := list -}}
{{- range (.root.Files.Get "files/routes.yaml" | fromYaml).routes -}}
{{- if and (eq .service $.name) (not (has .operation $exclude)) -}}
{{- $paths = append $paths .pattern -}}
{{- end -}}
{{- end -}}
{{- toYaml (dict "paths" $paths) -}}
{{- end }}

{{/* HTTPRoutes of one component: dict root, name, c. */}}
{{- define "lectern.httpRoutes" -}}
{{- $r := .root.Values.routes -}}
{{- $g := $r.gateway -}}
{{- if not $g.parentRefs }}{{ fail "routes.gateway.parentRefs is empty; allowed: the gateways to hang routes on, such as [{name: traefik, namespace: traefik}]" }}{{ end -}}
{{- $object := printf "%s-%s" (include "lectern.fullname" .root) .name -}}
{{- $paths := (include "lectern.paths" . | fromYaml).paths -}}
{{- if $paths }}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  {{- include "lectern.metadata" (dict "root" .root "name" .name "object" $object "labels" $g.labels "annotations" $g.annotations) | nindent 2 }}
spec:
  parentRefs:
    {{- toYaml $g.parentRefs | nindent 4 }}
  {{- with $r.hosts }}
  hostnames:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  rules:
    - matches:
        {{- range $paths }}
        - path: {type: RegularExpression, value: {{ . | quote }}}
        {{- end }}
      {{- include "lectern.httpRoute.rest" . | nindent 6 }}
{{- end }}
{{- if and (eq .name "proxy") $r.proxy.hosts }}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  {{- include "lectern.metadata" (dict "root" .root "name" .name "object" (printf "%s-host" $object) "labels" $g.labels "annotations" $g.annotations) | nindent 2 }}
spec:
  parentRefs:
    {{- toYaml $g.parentRefs | nindent 4 }}
  hostnames:
    {{- toYaml $r.proxy.hosts | nindent 4 }}
  rules:
    - matches:
        - path: {type: PathPrefix, value: /}
      {{- include "lectern.httpRoute.rest" . | nindent 6 }}
{{- end }}
{{- end }}

{{- define "lectern.httpRoute.rest" -}}
backendRefs:
  - name: {{ include "lectern.fullname" .root }}-{{ .name }}
    port: {{ .c.service.port }}
{{- with .root.Values.routes.gateway.timeouts }}
timeouts:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Annotations of an Ingress of one flavour: dict root, flavour, regexp (whether its paths are patterns). */}}
{{- define "lectern.ingress.annotations" -}}
{{- $own := dict -}}
{{- $values := index .root.Values.routes .flavour -}}
{{- if eq .flavour "traefik" -}}
{{- if .regexp }}{{ $_ := set $own "traefik.ingress.kubernetes.io/router.pathmatcher" "PathRegexp" }}{{ end -}}
{{- with $values.entryPoints }}{{ $_ := set $own "traefik.ingress.kubernetes.io/router.entrypoints" . }}{{ end -}}
{{- with $values.tls }}{{ $_ := set $own "traefik.ingress.kubernetes.io/router.tls" "true" }}{{ end -}}
{{- else -}}
{{- /* Answers and bodies are streams: passed on as they come, whatever their size, for as long as they take. */ -}}
{{- range $name, $value := dict "use-regex" (toString .regexp) "proxy-buffering" "off" "proxy-request-buffering" "off" "proxy-body-size" "0" "proxy-read-timeout" "3600" "proxy-send-timeout" "3600" -}}
{{- $_ := set $own (printf "nginx.ingress.kubernetes.io/%s" $name) $value -}}
{{- end -}}
{{- end -}}
{{- toYaml (mergeOverwrite $own (deepCopy $values.annotations)) -}}
{{- end }}

{{/* A pattern in the words of one flavour: dict flavour, pattern. */}}
{{- define "lectern.ingress.path" -}}
{{- if eq .flavour "traefik" -}}
{{- /* An Ingress' path must begin with a slash, and Traefik anchors nothing: a slash that may be missing, and then
      the beginning, is the beginning. */ -}}
/?{{ .pattern }}
{{- else -}}
{{- /* ingress-nginx puts the anchor of the beginning there itself. */ -}}
{{ trimPrefix "^" .pattern }}
{{- end -}}
{{- end }}

{{/* One Ingress: dict root, name, c, flavour, object, hosts, paths, pathType. */}}
{{- define "lectern.ingress" -}}
{{- $values := index .root.Values.routes .flavour -}}
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  {{- include "lectern.metadata" (dict "root" .root "name" .name "object" .object "labels" $values.labels
    "annotations" (include "lectern.ingress.annotations" (dict "root" .root "flavour" .flavour "regexp" (eq .pathType "ImplementationSpecific")) | fromYaml)) | nindent 2 }}
spec:
  ingressClassName: {{ $values.className }}
  {{- with $values.tls }}
  tls:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  rules:
    {{- range .hosts | default (list "") }}
    - {{ if . }}host: {{ . | quote }}
      {{ end }}http:
        paths:
          {{- range $.paths }}
          - path: {{ . | quote }}
            pathType: {{ $.pathType }}
            backend:
              service:
                name: {{ include "lectern.fullname" $.root }}-{{ $.name }}
                port: {name: http}
          {{- end }}
    {{- end }}
{{- end }}

{{/* Ingresses of one component in one flavour: dict root, name, c, flavour. */}}
{{- define "lectern.ingresses" -}}
{{- $r := .root.Values.routes -}}
{{- $object := printf "%s-%s-%s" (include "lectern.fullname" .root) .name .flavour -}}
{{- $patterns := (include "lectern.paths" . | fromYaml).paths -}}
{{- if $patterns }}
{{- $paths := list -}}
{{- range $patterns }}{{ $paths = append $paths (include "lectern.ingress.path" (dict "flavour" $.flavour "pattern" .)) }}{{ end }}
---
{{ include "lectern.ingress" (merge (dict "object" $object "hosts" $r.hosts "paths" $paths "pathType" "ImplementationSpecific") .) }}
{{- end }}
{{- if and (eq .name "proxy") $r.proxy.hosts }}
---
{{ include "lectern.ingress" (merge (dict "object" (printf "%s-host" $object) "hosts" $r.proxy.hosts "paths" (list "/") "pathType" "Prefix") .) }}
{{- end }}
{{- end }}
