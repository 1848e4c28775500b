{{/* Ports of a rule, from a list of numbers. */}}
{{- define "lectern.tcp" -}}
{{- range . }}
- {protocol: TCP, port: {{ . }}}
{{- end }}
{{- end }}

{{/* Who a component is reached by, and whom it reaches: dict root, name, c. */}}
{{- define "lectern.networkPolicy" -}}
{{- $v := .root.Values -}}
{{- $p := $v.networkPolicy -}}
{{- if $p.enabled -}}
{{- $peer := dict -}}
{{- range list "test" "operator" "region" }}
{{- $_ := set $peer . (list (dict "podSelector" (dict "matchLabels" (include "lectern.selector" (dict "root" $.root "name" .) | fromYaml)))) }}
{{- end -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "lectern.metadata" (dict "root" .root "name" .name "object" (printf "%s-%s" (include "lectern.fullname" .root) .name)) | nindent 2 }}
spec:
  podSelector:
    matchLabels:
      {{- include "lectern.selector" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
  ingress:
    {{- if ne .name "operator" }}
    - ports: [{protocol: TCP, port: http}]
      {{- with $p.publicFrom }}
      from:
        {{- toYaml (concat . $peer.test) | nindent 8 }}
      {{- end }}
    {{- end }}
    - ports: [{protocol: TCP, port: internal}]
      from:
        {{- toYaml (ternary (concat $p.internalFrom $peer.operator) $p.internalFrom (eq .name "region")) | nindent 8 }}
    {{- with .c.networkPolicy.extraIngress }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  egress:
    - ports: [{protocol: UDP, port: 53}, {protocol: TCP, port: 53}]
    - ports:
        {{- include "lectern.tcp" $p.postgresPorts | trim | nindent 8 }}
      {{- with $p.postgresTo }}
      to:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- if $v.redis.enabled }}
    - ports:
        {{- include "lectern.tcp" $p.redisPorts | trim | nindent 8 }}
      {{- with $p.redisTo }}
      to:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- end }}
    {{- if include "lectern.otlpEndpoint" .root }}
    - ports:
        {{- include "lectern.tcp" $p.otlpPorts | trim | nindent 8 }}
    {{- end }}
    {{- if include "lectern.asksAPIServer" . }}
    - ports:
        {{- include "lectern.tcp" $p.apiServerPorts | trim | nindent 8 }}
      {{- with $p.apiServerTo }}
      to:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- end }}
    {{- if eq .name "operator" }}
    - ports: [{protocol: TCP, port: internal}]
      to:
        {{- toYaml $peer.region | nindent 8 }}
    {{- end }}
    {{- if eq .name "proxy" }}
    # Third parties, on the ports that endpoints name.
    - to:
        - ipBlock:
            cidr: 0.0.0.0/0
            except:
              {{- toYaml $p.proxyExcept.ipv4 | nindent 14 }}
        - ipBlock:
            cidr: "::/0"
            except:
              {{- toYaml $p.proxyExcept.ipv6 | nindent 14 }}
    {{- end }}
    {{- with .c.networkPolicy.extraEgress }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}
{{- end }}
