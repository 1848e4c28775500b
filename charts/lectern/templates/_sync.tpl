{{/* The values of a copy, with those of sync.defaults below them, as JSON: dict root, copy. */}}
{{- define "lectern.sync.values" -}}
{{- mergeOverwrite (deepCopy .root.Values.sync.defaults) (deepCopy (index .root.Values.sync.copies .copy | default dict)) | toJson -}}
{{- end }}

{{/* The pods of the copies that read from the release's entries service, as peers of a NetworkPolicy, as JSON. */}}
{{- define "lectern.sync.peers" -}}
{{- $peers := list -}}
{{- range $copy, $_ := .Values.sync.copies -}}
{{- if not (include "lectern.sync.values" (dict "root" $ "copy" $copy) | fromJson).url -}}
{{- $peers = append $peers (dict "podSelector" (dict "matchLabels" (include "lectern.selector" (dict "root" $ "name" (printf "sync-%s" $copy)) | fromYaml))) -}}
{{- end -}}
{{- end -}}
{{- $peers | toJson -}}
{{- end }}

{{/* A copy's Deployment: dict root, name (sync-<copy>), c. */}}
{{- define "lectern.sync.deployment" -}}
{{- $v := .root.Values -}}
{{- $d := $v.defaults -}}
{{- $object := printf "%s-%s" (include "lectern.fullname" .root) .name -}}
{{- $entries := mergeOverwrite (deepCopy $d) (deepCopy $v.entries) -}}
{{- $url := .c.url -}}
{{- if not $url -}}
{{- if not $entries.enabled }}{{ fail (printf "sync.copies.%s.url is empty and entries.enabled is false; allowed: a URL, or the release's own entries service" (trimPrefix "sync-" .name)) }}{{ end -}}
{{- $url = printf "http://%s-entries.%s:%d" (include "lectern.fullname" .root) (include "lectern.namespace" .root) (int $entries.service.port) -}}
{{- end -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "lectern.metadata" (dict "root" .root "name" .name "object" $object) | nindent 2 }}
spec:
  replicas: 1
  revisionHistoryLimit: {{ $d.revisionHistoryLimit }}
  # One sync writes at a time: the old pod ends before the new one starts.
  strategy: {type: Recreate}
  selector:
    matchLabels:
      {{- include "lectern.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- toYaml (omit (include "lectern.labels" . | fromYaml) "helm.sh/chart") | nindent 8 }}
      {{- with $v.commonAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      {{- include "lectern.pod" (dict "root" .root "c" $d) | nindent 6 }}
      serviceAccountName: {{ include "lectern.serviceAccount" . }}
      automountServiceAccountToken: false
      containers:
        - name: sync
          image: {{ include "lectern.image" (dict "root" .root "image" $v.cli.image) }}
          imagePullPolicy: {{ $v.image.pullPolicy }}
          args:
            - sync
            - --follow
            - --retries={{ int .c.retries }}
            {{- with .c.schema }}
            - --schema={{ . }}
            {{- end }}
            {{- if .c.softDelete }}
            - --soft-delete
            {{- end }}
            {{- with .c.columns }}
            - --columns={{ . }}
            {{- end }}
            {{- if .c.moved }}
            - --moved
            {{- end }}
          env:
            {{- include "lectern.goEnvironment" . | trim | nindent 12 }}
            - {name: LECTERN_URL, value: {{ $url | quote }}}
            - {name: LECTERN_PROJECT_ID, value: {{ required (printf "sync.copies.%s.project is empty; allowed: the id of the project to copy" (trimPrefix "sync-" .name)) .c.project | quote }}}
            - {name: LECTERN_METRICS_ADDRESS, value: ":9090"}
            {{- include "lectern.fromSecret" (dict "name" "LECTERN_API_KEY" "secret" (.c.apiKey.existingSecret | default (printf "%s-key" $object)) "key" "api-key") | nindent 12 }}
            {{- include "lectern.fromSecret" (dict "name" "LECTERN_SYNC_TO" "secret" (.c.to.existingSecret | default $object)) | nindent 12 }}
            {{- with .c.extraEnv }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          {{- with .c.extraEnvFrom }}
          envFrom:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          ports:
            - {name: internal, containerPort: 9090}
          startupProbe:
            httpGet: {path: /healthz, port: internal}
            {{- toYaml $d.probes.startup | nindent 12 }}
          livenessProbe:
            httpGet: {path: /healthz, port: internal}
            {{- toYaml $d.probes.liveness | nindent 12 }}
          readinessProbe:
            httpGet: {path: /readyz, port: internal}
            {{- toYaml $d.probes.readiness | nindent 12 }}
          resources:
            {{- include "lectern.resources" .c.resources | nindent 12 }}
          securityContext:
            {{- include "lectern.withoutNulls" $d.securityContext | nindent 12 }}
          {{- with .c.extraVolumeMounts }}
          volumeMounts:
            {{- toYaml . | nindent 12 }}
          {{- end }}
      {{- with .c.extraVolumes }}
      volumes:
        {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end }}

{{/* A copy's Service, by which a ServiceMonitor finds its metrics: dict root, name, c. */}}
{{- define "lectern.sync.service" -}}
apiVersion: v1
kind: Service
metadata:
  {{- include "lectern.metadata" (dict "root" .root "name" .name "object" (printf "%s-%s" (include "lectern.fullname" .root) .name)) | nindent 2 }}
spec:
  {{- with .root.Values.defaults.service.ipFamilyPolicy }}
  ipFamilyPolicy: {{ . }}
  {{- end }}
  selector:
    {{- include "lectern.selector" . | nindent 4 }}
  ports:
    - {name: internal, port: 9090, targetPort: internal}
{{- end }}

{{/* The policy of a copy, both ingress and egress: dict root, name, c. */}}
{{- define "lectern.sync.networkPolicy" -}}
{{- $p := .root.Values.networkPolicy -}}
{{- if $p.enabled -}}
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
    - ports: [{protocol: TCP, port: internal}]
      from:
        {{- toYaml $p.internalFrom | nindent 8 }}
  egress:
    - ports: [{protocol: UDP, port: 53}, {protocol: TCP, port: 53}]
    {{- if not .c.url }}
    - ports: [{protocol: TCP, port: http}]
      to:
        - podSelector:
            matchLabels:
              {{- include "lectern.selector" (dict "root" .root "name" "entries") | nindent 14 }}
    {{- end }}
    - ports:
        {{- include "lectern.tcp" .c.networkPolicy.ports | trim | nindent 8 }}
      to:
        {{- toYaml .c.networkPolicy.to | nindent 8 }}
    {{- with .c.networkPolicy.extraEgress }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}
{{- end }}
