{{/* A component's Deployment: dict root, name, c. */}}
{{- define "lectern.deployment" -}}
{{- $v := .root.Values -}}
{{- $image := .c.image -}}
{{- if and (eq .name "internal") (not $image.repository) }}{{ $image = (mergeOverwrite (deepCopy $v.defaults) (deepCopy $v.edge)).image }}{{ end -}}
{{- $image = include "lectern.image" (dict "root" .root "image" $image) -}}
{{- if has .name (list "edge" "internal") -}}
{{- /* The edge must not cut requests that a service has time to finish. */ -}}
{{- range $name := splitList " " (include "lectern.services" .root) -}}
{{- $c := mergeOverwrite (deepCopy $v.defaults) (deepCopy (index $v $name)) -}}
{{- $_ := set $.c.drain "timeoutSeconds" (max (int $.c.drain.timeoutSeconds) (int $c.drain.timeoutSeconds)) -}}
{{- end -}}
{{- end -}}
{{- $grace := int .c.terminationGracePeriodSeconds -}}
{{- if not $grace }}{{ $grace = add .c.drain.preStopSeconds .c.drain.delaySeconds .c.drain.timeoutSeconds 12 }}{{ end -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "lectern.metadata" (dict "root" .root "name" .name "object" (printf "%s-%s" (include "lectern.fullname" .root) .name) "labels" .c.labels "annotations" .c.annotations) | nindent 2 }}
spec:
  {{- if not .c.autoscaling.enabled }}
  replicas: {{ .c.replicas }}
  {{- end }}
  revisionHistoryLimit: {{ .c.revisionHistoryLimit }}
  minReadySeconds: {{ .c.minReadySeconds }}
  strategy:
    {{- toYaml .c.strategy | nindent 4 }}
  selector:
    matchLabels:
      {{- include "lectern.selector" . | nindent 6 }}
  template:
    metadata:
      {{- include "lectern.podMetadata" (merge (dict "container" .name) .) | nindent 6 }}
    spec:
      {{- include "lectern.pod" . | nindent 6 }}
      serviceAccountName: {{ include "lectern.serviceAccount" . }}
      automountServiceAccountToken: {{ include "lectern.asksAPIServer" . | eq "true" }}
      terminationGracePeriodSeconds: {{ $grace }}
      {{- with .c.topologySpreadConstraints }}
      topologySpreadConstraints:
        {{- range . }}
        - {{ toYaml (merge (dict "labelSelector" (dict "matchLabels" (include "lectern.selector" $ | fromYaml)) "matchLabelKeys" (list "pod-template-hash")) .) | nindent 10 | trim }}
        {{- end }}
      {{- end }}
      {{- $migrates := and (not (has .name (list "proxy" "console" "edge" "internal"))) .c.migrate.enabled }}
      {{- $ownerEnv := "" }}
      {{- if $migrates }}{{ $ownerEnv = include "lectern.migrationEnvironment" . | trim }}{{ end }}
      {{- $ownerPasswords := include "lectern.passwordsVolume" (dict "name" "owner-passwords" "env" $ownerEnv) }}
      {{- $env := include "lectern.environment" . | trim }}
      {{- $passwords := include "lectern.passwordsVolume" (dict "name" "passwords" "env" $env) }}
      {{- $issuers := include "lectern.issuersVolume" . }}
      {{- $ca := include "lectern.caVolume" .root }}
      {{- $waits := and $v.dev.enabled (not .c.database.existingSecret) $migrates }}
      {{- if or $migrates .c.extraInitContainers }}
      initContainers:
        {{- with .c.extraInitContainers }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- if $waits }}
        - name: wait
          {{- include "lectern.dev.waitForPostgres" . | nindent 10 }}
        {{- end }}
        {{- if $migrates }}
        - name: migrate
          image: {{ $image }}
          imagePullPolicy: {{ $v.image.pullPolicy }}
          args: [migrate]
          env:
            {{- $ownerEnv | nindent 12 }}
          {{- with .c.extraEnvFrom }}
          envFrom:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          resources:
            {{- include "lectern.resources" .c.resources | nindent 12 }}
          securityContext:
            {{- include "lectern.withoutNulls" .c.securityContext | nindent 12 }}
          {{- if or $ownerPasswords $ca .c.extraVolumeMounts }}
          volumeMounts:
            {{- if $ca }}
            - {name: ca-bundle, mountPath: /etc/lectern/ca, readOnly: true}
            {{- end }}
            {{- if $ownerPasswords }}
            - {name: owner-passwords, mountPath: /etc/lectern/passwords, readOnly: true}
            {{- end }}
            {{- with .c.extraVolumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          {{- end }}
        {{- end }}
      {{- end }}
      containers:
        - name: {{ .name }}
          image: {{ $image }}
          imagePullPolicy: {{ $v.image.pullPolicy }}
          env:
            {{- $env | nindent 12 }}
          {{- with .c.extraEnvFrom }}
          envFrom:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          ports:
            {{- if ne .name "operator" }}
            - {name: http, containerPort: 8080}
            {{- end }}
            - {name: internal, containerPort: 9090}
          startupProbe:
            httpGet: {path: /healthz, port: internal}
            {{- toYaml .c.probes.startup | nindent 12 }}
          livenessProbe:
            httpGet: {path: /healthz, port: internal}
            {{- toYaml .c.probes.liveness | nindent 12 }}
          readinessProbe:
            httpGet: {path: /readyz, port: internal}
            {{- toYaml .c.probes.readiness | nindent 12 }}
          {{- if gt (int .c.drain.preStopSeconds) 0 }}
          lifecycle:
            preStop: {sleep: {seconds: {{ .c.drain.preStopSeconds }}}}
          {{- end }}
          resources:
            {{- include "lectern.resources" .c.resources | nindent 12 }}
          securityContext:
            {{- include "lectern.withoutNulls" .c.securityContext | nindent 12 }}
          {{- $manifests := and (eq .name "proxy") $v.proxy.manifests.existingSecret }}
          {{- if or $passwords $issuers $ca $manifests .c.extraVolumeMounts }}
          volumeMounts:
            {{- if $ca }}
            - {name: ca-bundle, mountPath: /etc/lectern/ca, readOnly: true}
            {{- end }}
            {{- if $passwords }}
            - {name: passwords, mountPath: /etc/lectern/passwords, readOnly: true}
            {{- end }}
            {{- if $issuers }}
            - {name: issuers, mountPath: /etc/lectern/issuers, readOnly: true}
            {{- end }}
            {{- if $manifests }}
            - {name: manifests, mountPath: /etc/lectern/manifests, readOnly: true}
            {{- end }}
            {{- with .c.extraVolumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          {{- end }}
        {{- with .c.extraContainers }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- if or $passwords $ownerPasswords $issuers $ca $manifests .c.extraVolumes }}
      volumes:
        {{- range list $passwords $ownerPasswords $issuers $ca }}
        {{- with . }}
        - {{ . | nindent 10 | trim }}
        {{- end }}
        {{- end }}
        {{- if $manifests }}
        - name: manifests
          secret: {secretName: {{ $v.proxy.manifests.existingSecret }}}
        {{- end }}
        {{- with .c.extraVolumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- end }}
{{- end }}
