{{/* The values of a copy, with those of sync.defaults below them, as JSON: dict root, copy. */}}
{{- define "lectern.sync.values" -}}
{{- mergeOverwrite (deepCopy .root.Values.sync.defaults) (deepCopy (index .root.Values.sync.copies .copy | default dict)) | toJson -}}
{{- end }}

{{/* The pods of the copies that read from the release's own services, as peers of a NetworkPolicy, as JSON. */}}
{{- define "lectern.sync.peers" -}}
{{- $peers := list -}}
{{- range $copy, $_ := .Values.sync.copies -}}
{{- if not (include "lectern.sync.values" (dict "root" $ "copy" $copy) | fromJson).url -}}
{{- $peers = append $peers (dict "podSelector" (dict "matchLabels" (include "lectern.selector" (dict "root" $ "name" (printf "sync-%s" $copy)) | fromYaml))) -}}
{{- end -}}
{{- end -}}
{{- $peers | toJson -}}
{{- end }}

{{/* The component that copies of the release read from: the edge, or without one the entries service alone. */}}
{{- define "lectern.sync.api" -}}
{{ ternary "edge" "entries" (ne (include "lectern.edge" .) "") }}
{{- end }}

{{/* The pod of a copy, which follows the feed or compares the copy: dict root, name (sync-<copy>), c, verify. */}}
{{- define "lectern.sync.pod" -}}
{{- $v := .root.Values -}}
{{- $d := mergeOverwrite (deepCopy $v.defaults) (deepCopy .c) -}}
{{- $object := printf "%s-%s" (include "lectern.fullname" .root) .name -}}
{{- $api := include "lectern.sync.api" .root -}}
{{- $entries := mergeOverwrite (deepCopy $v.defaults) (deepCopy $v.entries) -}}
{{- $from := mergeOverwrite (deepCopy $v.defaults) (deepCopy (index $v $api)) -}}
{{- $url := .c.url -}}
{{- if not $url -}}
{{- if not $entries.enabled }}{{ fail (printf "sync.copies.%s.url is empty and entries.enabled is false; allowed: a URL, or the release's own entries service" (trimPrefix "sync-" .name)) }}{{ end -}}
{{- $url = printf "http://%s-%s.%s:%d" (include "lectern.fullname" .root) $api (include "lectern.namespace" .root) (int $from.service.port) -}}
{{- end -}}
{{- $mounts := .c.extraVolumeMounts -}}
{{- $volumes := .c.extraVolumes -}}
{{- $resources := .c.resources -}}
{{- if and .c.push.enabled .c.push.volumeClaim -}}
{{- $mounts = append $mounts (dict "name" "state" "mountPath" "/state") -}}
{{- $volumes = append $volumes (dict "name" "state" "persistentVolumeClaim" (dict "claimName" .c.push.volumeClaim)) -}}
{{- end -}}
{{- $headers := and .c.push.enabled .c.push.headers -}}
{{- if $headers -}}
{{- $item := dict "key" "LECTERN_SYNC_HEADERS" "path" "LECTERN_SYNC_HEADERS" -}}
{{- $source := dict "secret" (dict "name" (.c.to.existingSecret | default $object) "items" (list $item)) -}}
{{- $mounts = append $mounts (dict "name" "headers" "mountPath" "/etc/lectern/headers" "readOnly" true) -}}
{{- $volumes = append $volumes (dict "name" "headers" "projected" (dict "defaultMode" 0440 "sources" (list $source))) -}}
{{- end -}}
{{- $ca := include "lectern.caVolume" .root -}}
{{- if $ca -}}
{{- $mounts = append $mounts (dict "name" "ca-bundle" "mountPath" "/etc/lectern/ca" "readOnly" true) -}}
{{- $volumes = append $volumes ($ca | fromYaml) -}}
{{- end -}}
{{- if or .verify (not .c.push.enabled) -}}
{{- /* A copy that follows the feed compares itself when its source has lost changes. */ -}}
{{- $mounts = append $mounts (dict "name" "records" "mountPath" "/tmp") -}}
{{- $volumes = append $volumes (dict "name" "records" "emptyDir" (dict "sizeLimit" .c.verify.storage)) -}}
{{- $storage := dict "ephemeral-storage" .c.verify.storage -}}
{{- $resources = mergeOverwrite (deepCopy $resources) (dict "requests" (ternary $storage dict .verify) "limits" $storage) -}}
{{- end -}}
metadata:
  {{- include "lectern.podMetadata" (dict "root" .root "name" .name "c" $d "container" "sync") | nindent 2 }}
spec:
  {{- include "lectern.pod" (dict "root" .root "c" $d) | nindent 2 }}
  serviceAccountName: {{ include "lectern.serviceAccount" . }}
  automountServiceAccountToken: false
  {{- if .verify }}
  restartPolicy: Never
  {{- end }}
  containers:
    - name: sync
      image: {{ include "lectern.image" (dict "root" .root "image" $v.cli.image) }}
      imagePullPolicy: {{ $v.image.pullPolicy }}
      args:
        - sync
        - {{ ternary "--verify" "--follow" .verify }}
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
        {{- range .c.without }}
        - {{ printf "--without=%s" . | quote }}
        {{- end }}
        {{- range .c.hash }}
        - {{ printf "--hash=%s" . | quote }}
        {{- end }}
        {{- if .c.moved }}
        - --moved
        {{- end }}
        {{- if .c.push.enabled }}
        - --batch={{ int .c.push.batch }}
        {{- with .c.push.from }}
        - --from={{ . }}
        {{- end }}
        {{- with .c.push.types }}
        - --types={{ join "," . }}
        {{- end }}
        {{- if .c.push.volumeClaim }}
        - --state=/state/{{ $object }}.json
        {{- end }}
        {{- if .c.push.resume }}
        - --resume
        {{- end }}
        {{- if $headers }}
        - --header-file=/etc/lectern/headers/LECTERN_SYNC_HEADERS
        {{- end }}
        {{- end }}
      env:
        {{- include "lectern.goEnvironment" . | trim | nindent 8 }}
        - {name: LECTERN_URL, value: {{ $url | quote }}}
        - {name: LECTERN_PROJECT_ID, value: {{ required (printf "sync.copies.%s.project is empty; allowed: the id of the project to copy" (trimPrefix "sync-" .name)) .c.project | quote }}}
        {{- if $ca }}
        - {name: CA_FILE, value: /etc/lectern/ca/ca.crt}
        {{- end }}
        {{- if not .verify }}
        - {name: LECTERN_METRICS_ADDRESS, value: ":9090"}
        {{- end }}
        {{- include "lectern.fromSecret" (dict "name" "LECTERN_API_KEY" "secret" (.c.apiKey.existingSecret | default (printf "%s-key" $object)) "key" "api-key") | nindent 8 }}
        {{- include "lectern.fromSecret" (dict "name" "LECTERN_SYNC_TO" "secret" (.c.to.existingSecret | default $object)) | nindent 8 }}
        {{- if .c.push.enabled }}
        {{- include "lectern.fromSecret" (dict "name" "LECTERN_SYNC_SECRET" "secret" (.c.to.existingSecret | default $object)) | nindent 8 }}
        {{- if not .c.push.volumeClaim }}
        {{- include "lectern.fromSecret" (dict "name" "LECTERN_SYNC_STATE" "secret" (.c.to.existingSecret | default $object)) | nindent 8 }}
        {{- end }}
        {{- end }}
        {{- if .c.hash }}
        {{- include "lectern.fromSecret" (dict "name" "LECTERN_HASH_SECRET" "secret" (.c.to.existingSecret | default $object)) | nindent 8 }}
        {{- end }}
        {{- with .c.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with .c.extraEnvFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- if not .verify }}
      ports:
        - {name: internal, containerPort: 9090}
      startupProbe:
        httpGet: {path: /healthz, port: internal}
        {{- toYaml $d.probes.startup | nindent 8 }}
      livenessProbe:
        httpGet: {path: /healthz, port: internal}
        {{- toYaml $d.probes.liveness | nindent 8 }}
      readinessProbe:
        httpGet: {path: /readyz, port: internal}
        {{- toYaml $d.probes.readiness | nindent 8 }}
      {{- end }}
      resources:
        {{- include "lectern.resources" $resources | nindent 8 }}
      securityContext:
        {{- include "lectern.withoutNulls" $d.securityContext | nindent 8 }}
      {{- with $mounts }}
      volumeMounts:
        {{- toYaml . | nindent 8 }}
      {{- end }}
  {{- with $volumes }}
  volumes:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* A copy's Deployment: dict root, name, c. */}}
{{- define "lectern.sync.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "lectern.metadata" (dict "root" .root "name" .name "object" (printf "%s-%s" (include "lectern.fullname" .root) .name)) | nindent 2 }}
spec:
  replicas: 1
  revisionHistoryLimit: {{ .root.Values.defaults.revisionHistoryLimit }}
  # One sync writes at a time: the old pod ends before the new one starts.
  strategy: {type: Recreate}
  selector:
    matchLabels:
      {{- include "lectern.selector" . | nindent 6 }}
  template:
    {{- include "lectern.sync.pod" (merge (dict "verify" false) .) | nindent 4 }}
{{- end }}

{{/* The CronJob that compares a copy with its source, beside the Deployment: dict root, name, c. Its pods have the copy's
     labels, and so its NetworkPolicy. */}}
{{- define "lectern.sync.verify" -}}
{{- with ternary "" .c.verify.schedule .c.push.enabled -}}
apiVersion: batch/v1
kind: CronJob
metadata:
  {{- include "lectern.metadata" (dict "root" $.root "name" $.name "object" (printf "%s-%s-verify" (include "lectern.fullname" $.root) $.name)) | nindent 2 }}
spec:
  schedule: {{ . | quote }}
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: 3600
  jobTemplate:
    spec:
      backoffLimit: 0
      activeDeadlineSeconds: {{ int $.c.verify.timeoutSeconds }}
      template:
        {{- include "lectern.sync.pod" (merge (dict "verify" true) $) | nindent 8 }}
{{- end -}}
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
    - {name: internal, port: 9090, targetPort: internal, appProtocol: http}
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
    {{- include "lectern.dnsEgress" .root | nindent 4 }}
    {{- if not .c.url }}
    - ports: [{protocol: TCP, port: http}]
      to:
        - podSelector:
            matchLabels:
              {{- include "lectern.selector" (dict "root" .root "name" (include "lectern.sync.api" .root)) | nindent 14 }}
    {{- end }}
    - ports:
        {{- include "lectern.tcp" .c.networkPolicy.ports | trim | nindent 8 }}
      to:
        {{- toYaml .c.networkPolicy.to | nindent 8 }}
    {{- with concat .root.Values.defaults.networkPolicy.extraEgress .c.networkPolicy.extraEgress }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}
{{- end }}
