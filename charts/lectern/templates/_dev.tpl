{{/* An init container that waits until the development Postgres answers, so that migrations do not fail. */}}
{{- define "lectern.dev.waitForPostgres" -}}
image: {{ include "lectern.image" (dict "root" .root "image" .root.Values.dev.postgres.image) }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
command: [sh, -c, "for second in $(seq 300); do pg_isready -U postgres -h {{ include "lectern.fullname" .root }}-dev-postgres && exit 0; sleep 1; done; exit 1"]
resources:
  {{- include "lectern.resources" .c.resources | nindent 2 }}
securityContext:
  {{- include "lectern.withoutNulls" .c.securityContext | nindent 2 }}
{{- end }}

{{/* Whether the release has a development Postgres already: "true", or nothing. */}}
{{- define "lectern.dev.runs" -}}
{{- if include "lectern.lookup (set lookups=false to ask nothing)" (list . "apps/v1" "Deployment" (include "lectern.namespace" .) (printf "%s-dev-postgres" (include "lectern.fullname" .))) | fromJson -}}
true
{{- end -}}
{{- end }}

{{/* Whether the development Postgres has a claim: "true", or nothing. With auto the first
     installation decides: it has one if the cluster has a default class. */}}
{{- define "lectern.dev.hasClaim" -}}
{{- $s := .Values.dev.postgres.storage -}}
{{- if or (eq $s.type "claim") (and (eq $s.type "auto") $s.storageClass) -}}
true
{{- else if eq $s.type "auto" -}}
{{- $name := printf "%s-dev-postgres" (include "lectern.fullname" .) -}}
{{- $has := include "lectern.lookup (set lookups=false to ask nothing)" (list . "v1" "PersistentVolumeClaim" (include "lectern.namespace" .) $name) | fromJson -}}
{{- if not (include "lectern.dev.runs" .) -}}
{{- range (include "lectern.lookup (set lookups=false to ask nothing)" (list . "storage.k8s.io/v1" "StorageClass" "" "") | fromJson).items -}}
{{- if eq (get (.metadata.annotations | default dict) "storageclass.kubernetes.io/is-default-class") "true" }}{{ $has = . }}{{ end -}}
{{- end -}}
{{- end -}}
{{- if $has }}true{{ end -}}
{{- end -}}
{{- end }}

{{/* The volume source of the development Postgres. */}}
{{- define "lectern.dev.data" -}}
{{- if include "lectern.dev.hasClaim" . -}}
persistentVolumeClaim: {claimName: {{ include "lectern.fullname" . }}-dev-postgres}
{{- else -}}
emptyDir: {}
{{- end -}}
{{- end }}

{{/* The claim of the development Postgres, if it has one. */}}
{{- define "lectern.dev.claim" -}}
{{- if include "lectern.dev.hasClaim" . -}}
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  {{- include "lectern.metadata" (dict "root" . "name" "dev-postgres" "object" (printf "%s-dev-postgres" (include "lectern.fullname" .))) | nindent 2 }}
spec:
  accessModes: [ReadWriteOnce]
  {{- with .Values.dev.postgres.storage.storageClass }}
  storageClassName: {{ . }}
  {{- end }}
  resources:
    requests: {storage: {{ .Values.dev.postgres.storage.size }}}
{{- end -}}
{{- end }}

{{- define "lectern.dev.postgres" -}}
args: [-c, max_connections={{ .Values.dev.postgres.maxConnections }}]
env:
  - {name: PGDATA, value: /var/lib/postgresql/data/pgdata}
  - name: POSTGRES_PASSWORD
    valueFrom: {secretKeyRef: {name: {{ include "lectern.fullname" . }}-dev, key: postgres}}
# While the image makes the roles, its server has a socket alone and no port.
readinessProbe: {tcpSocket: {port: server}, periodSeconds: 1, timeoutSeconds: 2}
livenessProbe: {tcpSocket: {port: server}, periodSeconds: 10, timeoutSeconds: 5, initialDelaySeconds: 30}
volumeMounts:
  - {name: data, mountPath: /var/lib/postgresql/data}
  - {name: run, mountPath: /var/run/postgresql}
  - {name: tmp, mountPath: /tmp}
  - {name: roles, mountPath: /docker-entrypoint-initdb.d, readOnly: true}
resources:
  {{- toYaml .Values.dev.postgres.resources | nindent 2 }}
{{- end }}

{{- define "lectern.dev.redis" -}}
# The password is expanded by Kubernetes: the image may have no shell.
args: [--save, "", --appendonly, "no", --requirepass, $(REDIS_PASSWORD)]
env:
  - name: REDIS_PASSWORD
    valueFrom: {secretKeyRef: {name: {{ include "lectern.fullname" . }}-dev, key: redis}}
  - name: REDISCLI_AUTH # for kubectl exec … redis-cli
    valueFrom: {secretKeyRef: {name: {{ include "lectern.fullname" . }}-dev, key: redis}}
readinessProbe: {tcpSocket: {port: server}, periodSeconds: 1, timeoutSeconds: 2}
livenessProbe: {tcpSocket: {port: server}, periodSeconds: 10, timeoutSeconds: 5}
volumeMounts:
  - {name: data, mountPath: /data}
resources:
  requests: {cpu: 50m, memory: 32Mi, ephemeral-storage: 8Mi}
  limits: {cpu: "1", memory: 256Mi, ephemeral-storage: 256Mi}
{{- end }}

{{- define "lectern.dev.collector" -}}
args: [--config=/etc/otelcol/config.yaml]
readinessProbe: {tcpSocket: {port: second}, periodSeconds: 1, timeoutSeconds: 2}
livenessProbe: {tcpSocket: {port: server}, periodSeconds: 10, timeoutSeconds: 5}
volumeMounts:
  - {name: config, mountPath: /etc/otelcol, readOnly: true}
resources:
  requests: {cpu: 50m, memory: 64Mi, ephemeral-storage: 8Mi}
  limits: {cpu: "1", memory: 256Mi, ephemeral-storage: 256Mi}
{{- end }}

{{/* One server of a development cluster: dict root, name, port, secondPort, server (its values), container, volumes, paused. */}}
{{- define "lectern.dev.server" -}}
{{- $object := printf "%s-%s" (include "lectern.fullname" .root) .name -}}
{{- /* Postgres' and Redis' images have a user of their own. Where the platform assigns users, it does so here too. */}}
{{- $pod := deepCopy .root.Values.defaults -}}
{{- if ne .name "dev-collector" -}}
{{- range list "runAsUser" "runAsGroup" "fsGroup" }}{{ if get $pod.podSecurityContext . }}{{ $_ := set $pod.podSecurityContext . 999 }}{{ end }}{{ end -}}
{{- end -}}
{{- /* Without labels of versions, podLabels and podAnnotations, an upgrade does not replace the pod, which may hold data. */}}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "lectern.metadata" (dict "root" .root "name" .name "object" $object) | nindent 2 }}
spec:
  replicas: 1
  {{- if .paused }}
  paused: true # a new pod would have none of the data
  {{- end }}
  strategy: {type: Recreate}
  selector:
    matchLabels:
      {{- include "lectern.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- toYaml (omit (include "lectern.labels" . | fromYaml) "helm.sh/chart" "app.kubernetes.io/version") | nindent 8 }}
    spec:
      {{- include "lectern.pod" (dict "root" .root "c" $pod) | nindent 6 }}
      automountServiceAccountToken: false
      containers:
        - name: server
          image: {{ include "lectern.image" (dict "root" .root "image" .server.image) }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          ports:
            - {name: server, containerPort: {{ .port }}}
            {{- with .secondPort }}
            - {name: second, containerPort: {{ . }}}
            {{- end }}
          {{- toYaml .container | nindent 10 }}
          securityContext:
            {{- include "lectern.withoutNulls" .root.Values.defaults.securityContext | nindent 12 }}
      volumes:
        {{- toYaml .volumes | nindent 8 }}
---
apiVersion: v1
kind: Service
metadata:
  {{- include "lectern.metadata" (dict "root" .root "name" .name "object" $object) | nindent 2 }}
spec:
  selector:
    {{- include "lectern.selector" . | nindent 4 }}
  ports:
    - {name: server, port: {{ .port }}, targetPort: server}
    {{- with .secondPort }}
    - {name: second, port: {{ . }}, targetPort: second}
    {{- end }}
{{- if .root.Values.networkPolicy.enabled }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "lectern.metadata" (dict "root" .root "name" .name "object" $object) | nindent 2 }}
spec:
  podSelector:
    matchLabels:
      {{- include "lectern.selector" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
  ingress:
    - from:
        - podSelector: {}
      ports:
        - {protocol: TCP, port: server}
        {{- if .secondPort }}
        - {protocol: TCP, port: second}
        {{- end }}
{{- end }}
{{- end }}
