{{/* What waits until the development Postgres answers, so that migrations are not tried in vain. */}}
{{- define "lectern.dev.waitForPostgres" -}}
image: {{ include "lectern.image" (dict "root" .root "image" .root.Values.dev.postgres.image) }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
command: [sh, -c, "for second in $(seq 300); do pg_isready -q -h {{ include "lectern.fullname" .root }}-dev-postgres && exit 0; sleep 1; done; exit 1"]
resources:
  {{- include "lectern.resources" .c.resources | nindent 2 }}
securityContext:
  {{- toYaml .c.securityContext | nindent 2 }}
{{- end }}

{{- define "lectern.dev.postgres" -}}
args: [-c, max_connections={{ .Values.dev.postgres.maxConnections }}]
env:
  - {name: PGDATA, value: /var/lib/postgresql/data/pgdata}
  - name: POSTGRES_PASSWORD
    valueFrom: {secretKeyRef: {name: {{ include "lectern.fullname" . }}-dev, key: postgres}}
readinessProbe: {exec: {command: [pg_isready, -q, -h, 127.0.0.1, -U, postgres]}, periodSeconds: 1, timeoutSeconds: 2}
livenessProbe: {tcpSocket: {port: server}, periodSeconds: 10, timeoutSeconds: 5, initialDelaySeconds: 30}
volumeMounts:
  - {name: data, mountPath: /var/lib/postgresql/data}
  - {name: run, mountPath: /var/run/postgresql}
  - {name: tmp, mountPath: /tmp}
  - {name: roles, mountPath: /docker-entrypoint-initdb.d, readOnly: true}
{{- end }}

{{- define "lectern.dev.redis" -}}
# The password is expanded by Kubernetes: the image may have no shell.
args: [--save, "", --appendonly, "no", --requirepass, $(REDIS_PASSWORD)]
env:
  - name: REDIS_PASSWORD
    valueFrom: {secretKeyRef: {name: {{ include "lectern.fullname" . }}-dev, key: redis}}
  - name: REDISCLI_AUTH
    valueFrom: {secretKeyRef: {name: {{ include "lectern.fullname" . }}-dev, key: redis}}
readinessProbe: {exec: {command: [redis-cli, ping]}, periodSeconds: 1, timeoutSeconds: 2}
livenessProbe: {tcpSocket: {port: server}, periodSeconds: 10, timeoutSeconds: 5}
volumeMounts:
  - {name: data, mountPath: /data}
{{- end }}

{{- define "lectern.dev.collector" -}}
args: [--config=/etc/otelcol/config.yaml]
readinessProbe: {tcpSocket: {port: second}, periodSeconds: 1, timeoutSeconds: 2}
livenessProbe: {tcpSocket: {port: server}, periodSeconds: 10, timeoutSeconds: 5}
volumeMounts:
  - {name: config, mountPath: /etc/otelcol, readOnly: true}
{{- end }}

{{/* One server of a development cluster: dict root, name, port, secondPort, server (its values), container, volumes. */}}
{{- define "lectern.dev.server" -}}
{{- $object := printf "%s-%s" (include "lectern.fullname" .root) .name -}}
{{- $user := dict "runAsUser" 999 "runAsGroup" 999 "fsGroup" 999 -}}
{{- if eq .name "dev-collector" }}{{ $user = dict "runAsUser" 65532 "runAsGroup" 65532 "fsGroup" 65532 }}{{ end }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "lectern.metadata" (dict "root" .root "name" .name "object" $object) | nindent 2 }}
spec:
  replicas: 1
  strategy: {type: Recreate}
  selector:
    matchLabels:
      {{- include "lectern.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "lectern.labels" . | nindent 8 }}
    spec:
      enableServiceLinks: false
      automountServiceAccountToken: false
      securityContext:
        {{- toYaml (mergeOverwrite (deepCopy .root.Values.defaults.podSecurityContext) $user) | nindent 8 }}
      {{- with .root.Values.image.pullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
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
          resources:
            {{- toYaml .server.resources | nindent 12 }}
          securityContext:
            {{- toYaml .root.Values.defaults.securityContext | nindent 12 }}
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
