{{/* Fails if values of routing contradict each other. */}}
{{- define "lectern.routing.check" -}}
{{- $r := .Values.routing -}}
{{- with .Values.routes -}}
{{- fail (printf "routes was given (%s); allowed: routing, which takes the same values. With routing.mode=gateway they mean what they meant; by default the edge routes (docs/how-to/install.md, upgrade notes)" (keys . | sortAlpha | join ", ")) -}}
{{- end -}}
{{- $enabled := list -}}
{{- range list "gateway" "ingress" "traefik" "nginx" }}{{ if (index $r .).enabled }}{{ $enabled = append $enabled (printf "routing.%s.enabled" .) }}{{ end }}{{ end -}}
{{- if and (eq $r.mode "gateway") $r.ingress.enabled -}}
{{- fail "routing.mode is gateway and routing.ingress.enabled is true; allowed: routing.mode edge with it, as a plain Ingress knows no regular expressions, or routing.gateway, routing.traefik or routing.nginx" -}}
{{- end -}}
{{- if and (eq $r.mode "edge") $enabled (not (include "lectern.edge" .)) -}}
{{- fail (printf "routing.mode is edge and %s is true, but edge.enabled (or defaults.enabled) is false; allowed: edge.enabled true, or routing.mode gateway" (join ", " $enabled)) -}}
{{- end -}}
{{- end }}

{{/* The patterns of one component's paths that are routed, as a YAML list: dict root, name. None in mode edge. */}}
{{- define "lectern.patterns" -}}
{{- $r := .root.Values.routing -}}
{{- $patterns := list -}}
{{- range (.root.Files.Get "files/routes.yaml" | fromYaml).routes -}}
{{- if and (eq $r.mode "gateway") (eq .service $.name) (not (has .operation $r.exclude)) -}}
{{- $patterns = append $patterns .pattern -}}
{{- end -}}
{{- end -}}
{{- toYaml (dict "patterns" $patterns) -}}
{{- end }}

{{/* The routes to one component, as a YAML list of object (the end of a name), hosts, patterns. Without patterns, all paths
     are routed: dict root, name. */}}
{{- define "lectern.ways" -}}
{{- $r := .root.Values.routing -}}
{{- $ways := list -}}
{{- $patterns := (include "lectern.patterns" . | fromYaml).patterns -}}
{{- if or $patterns (and (eq $r.mode "edge") (eq .name "edge")) -}}
{{- $ways = append $ways (dict "object" "" "hosts" $r.hosts "patterns" $patterns) -}}
{{- end -}}
{{- if and (eq .name "proxy") $r.proxy.hosts -}}
{{- $ways = append $ways (dict "object" "-host" "hosts" $r.proxy.hosts "patterns" list) -}}
{{- end -}}
{{- toYaml (dict "ways" $ways) -}}
{{- end }}

{{/* HTTPRoutes of one component: dict root, name, c. */}}
{{- define "lectern.httpRoutes" -}}
{{- $g := .root.Values.routing.gateway -}}
{{- if not $g.parentRefs }}{{ fail "routing.gateway.parentRefs is empty; allowed: the gateways to hang routes on, such as [{name: traefik, namespace: traefik}]" }}{{ end -}}
{{- $component := printf "%s-%s" (include "lectern.fullname" .root) .name -}}
{{- range (include "lectern.ways" . | fromYaml).ways }}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  {{- include "lectern.metadata" (dict "root" $.root "name" $.name "object" (print $component .object) "labels" $g.labels "annotations" $g.annotations) | nindent 2 }}
spec:
  parentRefs:
    {{- toYaml $g.parentRefs | nindent 4 }}
  {{- with .hosts }}
  hostnames:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  rules:
    - matches:
        {{- range .patterns }}
        - path: {type: RegularExpression, value: {{ . | quote }}}
        {{- else }}
        - path: {type: PathPrefix, value: /}
        {{- end }}
      backendRefs:
        - name: {{ $component }}
          port: {{ $.c.service.port }}
      {{- with $g.timeouts }}
      timeouts:
        {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end }}
{{- end }}

{{/* Annotations of an Ingress of one flavour: dict root, flavour, regexp (whether its paths are patterns). */}}
{{- define "lectern.ingress.annotations" -}}
{{- $own := dict -}}
{{- $values := index .root.Values.routing .flavour -}}
{{- if eq .flavour "traefik" -}}
{{- if .regexp }}{{ $_ := set $own "traefik.ingress.kubernetes.io/router.pathmatcher" "PathRegexp" }}{{ end -}}
{{- with $values.entryPoints }}{{ $_ := set $own "traefik.ingress.kubernetes.io/router.entrypoints" . }}{{ end -}}
{{- with $values.tls }}{{ $_ := set $own "traefik.ingress.kubernetes.io/router.tls" "true" }}{{ end -}}
{{- else if eq .flavour "nginx" -}}
{{- /* Answers and bodies are streams of any size and duration. */ -}}
{{- range $name, $value := dict "use-regex" (toString .regexp) "proxy-buffering" "off" "proxy-request-buffering" "off" "proxy-body-size" "0" "proxy-read-timeout" "3600" "proxy-send-timeout" "3600" -}}
{{- $_ := set $own (printf "nginx.ingress.kubernetes.io/%s" $name) $value -}}
{{- end -}}
{{- end -}}
{{- toYaml (mergeOverwrite $own (deepCopy $values.annotations)) -}}
{{- end }}

{{/* A pattern in the syntax of one flavour: dict flavour, pattern. */}}
{{- define "lectern.ingress.path" -}}
{{- if eq .flavour "traefik" -}}
{{- /* An Ingress' path must begin with a slash, and Traefik does not anchor patterns. An optional slash before the anchor
      meets both. */ -}}
/?{{ .pattern }}
{{- else -}}
{{- /* ingress-nginx adds the anchor itself. */ -}}
{{ trimPrefix "^" .pattern }}
{{- end -}}
{{- end }}

{{/* Ingresses of one component in one flavour: dict root, name, c, flavour. */}}
{{- define "lectern.ingresses" -}}
{{- $values := index .root.Values.routing .flavour -}}
{{- $component := printf "%s-%s" (include "lectern.fullname" .root) .name -}}
{{- range $way := (include "lectern.ways" . | fromYaml).ways }}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  {{- include "lectern.metadata" (dict "root" $.root "name" $.name "object" (printf "%s-%s%s" $component $.flavour .object) "labels" $values.labels
    "annotations" (include "lectern.ingress.annotations" (dict "root" $.root "flavour" $.flavour "regexp" (not (empty .patterns))) | fromYaml)) | nindent 2 }}
spec:
  {{- with $values.className }}
  ingressClassName: {{ . }}
  {{- end }}
  {{- with $values.tls }}
  tls:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  rules:
    {{- range .hosts | default (list "") }}
    - {{ if . }}host: {{ . | quote }}
      {{ end }}http:
        paths:
          {{- range $way.patterns | default (list "/") }}
          - path: {{ if $way.patterns }}{{ include "lectern.ingress.path" (dict "flavour" $.flavour "pattern" .) | quote }}{{ else }}/{{ end }}
            pathType: {{ ternary "ImplementationSpecific" "Prefix" (not (empty $way.patterns)) }}
            backend:
              service:
                name: {{ $component }}
                port: {name: http}
          {{- end }}
    {{- end }}
{{- end }}
{{- end }}
