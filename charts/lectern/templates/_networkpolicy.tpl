{{/* Ports of a rule, from a list of numbers. */}}
{{- define "lectern.tcp" -}}
{{- range . }}
- {protocol: TCP, port: {{ . }}}
{{- end }}
{{- end }}

{{/* The rule for DNS. Some networks judge a connection after its address is translated, so that the port is that of the DNS
     server's pod, such as 5353. */}}
{{- define "lectern.dnsEgress" -}}
- ports:
  {{- range .Values.networkPolicy.dnsPorts }}
  - {protocol: UDP, port: {{ . }}}
  - {protocol: TCP, port: {{ . }}}
  {{- end }}
{{- end }}

{{/* The API server, as "to" in a NetworkPolicy, as JSON: networkPolicy.apiServerTo, or else the addresses that the cluster
     names. Without a cluster the value is required, because a rule without addresses would open its ports everywhere. */}}
{{- define "lectern.apiServerTo" -}}
{{- if .Values.networkPolicy.apiServerTo -}}
{{- .Values.networkPolicy.apiServerTo | toJson -}}
{{- else -}}
{{- $addresses := list -}}
{{- range (include "lectern.lookup (set lookups=false to ask nothing)" (list . "discovery.k8s.io/v1" "EndpointSlice" "default" "kubernetes") | fromJson).endpoints }}{{ $addresses = concat $addresses .addresses }}{{ end -}}
{{- $service := include "lectern.lookup (set lookups=false to ask nothing)" (list . "v1" "Service" "default" "kubernetes") | fromJson -}}
{{- range ($service.spec | default dict).clusterIPs }}{{ $addresses = append $addresses . }}{{ end -}}
{{- if not $addresses -}}
{{- fail "networkPolicy.apiServerTo is empty, and there is no cluster to ask for the API server's addresses, or lookups is false; allowed: peers, such as [{ipBlock: {cidr: 10.0.0.1/32}}], by kubectl -n default get endpointslice,service kubernetes" -}}
{{- end -}}
{{- $peers := list -}}
{{- range $addresses | uniq }}{{ $peers = append $peers (dict "ipBlock" (dict "cidr" (printf "%s/%s" . (ternary "128" "32" (contains ":" .))))) }}{{ end -}}
{{- $peers | toJson -}}
{{- end -}}
{{- end }}

{{/* Every address but those of networkPolicy.proxyExcept, as the field "to". */}}
{{- define "lectern.toPublic" -}}
to:
  - ipBlock:
      cidr: 0.0.0.0/0
      except:
        {{- toYaml .Values.networkPolicy.proxyExcept.ipv4 | nindent 8 }}
  - ipBlock:
      cidr: "::/0"
      except:
        {{- toYaml .Values.networkPolicy.proxyExcept.ipv6 | nindent 8 }}
{{- end }}

{{/* The policy of a component, both ingress and egress: dict root, name, c. */}}
{{- define "lectern.networkPolicy" -}}
{{- $v := .root.Values -}}
{{- $p := $v.networkPolicy -}}
{{- if $p.enabled -}}
{{- $peer := dict -}}
{{- range list "test" "operator" "region" "retention" "edge" "internal" }}
{{- $_ := set $peer . (list (dict "podSelector" (dict "matchLabels" (include "lectern.selector" (dict "root" $.root "name" .) | fromYaml)))) }}
{{- end -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "lectern.metadata" (dict "root" .root "name" .name "object" (printf "%s-%s" (include "lectern.fullname" .root) .name)) | nindent 2 }}
{{- $internal := $p.internalFrom -}}
{{- if eq .name "region" }}{{ $internal = concat $internal $peer.operator }}{{ end }}
{{- if and (has .name (list "entries" "embeddables")) $v.retention.enabled }}{{ $internal = concat $internal $peer.retention }}{{ end }}
{{- $services := splitList " " (include "lectern.services" .root) -}}
{{- $dataServices := splitList " " (include "lectern.dataServices" .root) -}}
{{- if has .name $dataServices }}{{ $internal = concat $internal $peer.internal }}{{ end }}
{{- $public := $peer.test -}}
{{- if eq .name (include "lectern.sync.api" .root) }}{{ $public = concat $public (include "lectern.sync.peers" .root | fromJsonArray) }}{{ end }}
{{- if and (include "lectern.edge" .root) (has .name $services) }}{{ $public = concat $public $peer.edge }}{{ end }}
{{- if not (include "lectern.behindEdge" .) }}{{ $public = concat $p.publicFrom $public }}{{ end }}
spec:
  podSelector:
    matchLabels:
      {{- include "lectern.selector" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
  ingress:
    {{- if eq .name "internal" }}
    - ports: [{protocol: TCP, port: http}]
      from:
        {{- toYaml $internal | nindent 8 }}
    {{- else if ne .name "operator" }}
    - ports: [{protocol: TCP, port: http}]
      {{- if $p.publicFrom }}
      from:
        {{- toYaml $public | nindent 8 }}
      {{- end }}
    {{- end }}
    - ports: [{protocol: TCP, port: internal}]
      from:
        {{- toYaml $internal | nindent 8 }}
    {{- with .c.networkPolicy.extraIngress }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  egress:
    {{- with .c.networkPolicy.egress }}
    {{- toYaml . | nindent 4 }}
    {{- else }}
    {{- include "lectern.dnsEgress" .root | nindent 4 }}
    {{- if include "lectern.usesStores" . }}
    {{- /* Each with its own peers: a rule of ports alone would let the proxy connect to these ports of any address. */}}
    - ports:
        {{- include "lectern.tcp" $p.postgresPorts | trim | nindent 8 }}
      to:
        {{- toYaml $p.postgresTo | nindent 8 }}
    {{- if $v.redis.enabled }}
    - ports:
        {{- include "lectern.tcp" $p.redisPorts | trim | nindent 8 }}
      to:
        {{- toYaml $p.redisTo | nindent 8 }}
    {{- end }}
    {{- end }}
    {{- if include "lectern.otlpEndpoint" .root }}
    - ports:
        {{- include "lectern.tcp" $p.otlpPorts | trim | nindent 8 }}
      to:
        {{- toYaml $p.otlpTo | nindent 8 }}
    {{- end }}
    {{- if include "lectern.verifiesTokens" . }}
    {{- range $v.tokens.issuers }}
    {{- with .egress }}
    {{- toYaml . | nindent 4 }}
    {{- else }}
    # A policy cannot name the issuer's host.
    - ports: [{protocol: TCP, port: {{ regexFind "[0-9]+$" (urlParse .url).host | default "443" }}}]
      {{- include "lectern.toPublic" $.root | nindent 6 }}
    {{- end }}
    {{- end }}
    {{- end }}
    {{- if or (include "lectern.asksAPIServer" .) (and (include "lectern.verifiesTokens" .) $v.tokens.cluster.enabled) }}
    - ports:
        {{- include "lectern.tcp" $p.apiServerPorts | trim | nindent 8 }}
      to:
        {{- include "lectern.apiServerTo" .root | fromJsonArray | toYaml | nindent 8 }}
    {{- end }}
    {{- if eq .name "operator" }}
    - ports: [{protocol: TCP, port: internal}]
      to:
        {{- toYaml $peer.region | nindent 8 }}
    {{- end }}
    {{- if eq .name "edge" }}
    - ports: [{protocol: TCP, port: http}]
      to:
        {{- range $services }}
        - podSelector:
            matchLabels:
              {{- include "lectern.selector" (dict "root" $.root "name" .) | nindent 14 }}
        {{- end }}
    {{- end }}
    {{- if eq .name "internal" }}
    - ports: [{protocol: TCP, port: internal}]
      to:
        {{- range $dataServices }}
        - podSelector:
            matchLabels:
              {{- include "lectern.selector" (dict "root" $.root "name" .) | nindent 14 }}
        {{- end }}
    {{- end }}
    {{- if or (eq .name "proxy") (and (eq .name "operator") .c.fetchCredentials) }}
    # Third parties, on the ports that endpoints and token URLs name.
    - {{- include "lectern.toPublic" .root | nindent 6 | trim | printf " %s" }}
    {{- end }}
    {{- end }}
    {{- with .c.networkPolicy.extraEgress }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}
{{- end }}
