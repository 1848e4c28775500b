{{/* A component's HorizontalPodAutoscaler, if it has one: dict root, name, c. */}}
{{- define "lectern.autoscaler" -}}
{{- with .c.autoscaling -}}
{{- if .enabled -}}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  {{- include "lectern.metadata" (dict "root" $.root "name" $.name "object" (printf "%s-%s" (include "lectern.fullname" $.root) $.name)) | nindent 2 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ include "lectern.fullname" $.root }}-{{ $.name }}
  minReplicas: {{ .minReplicas }}
  maxReplicas: {{ .maxReplicas }}
  metrics:
    {{- range $resource, $target := dict "cpu" .targetCPUUtilizationPercentage "memory" .targetMemoryUtilizationPercentage }}
    {{- if gt (int $target) 0 }}
    - type: Resource
      resource:
        name: {{ $resource }}
        target: {type: Utilization, averageUtilization: {{ $target }}}
    {{- end }}
    {{- end }}
    {{- with .metrics }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  behavior:
    {{- toYaml .behavior | nindent 4 }}
{{- end -}}
{{- end -}}
{{- end }}

{{/* A component's PodDisruptionBudget, if it has one. */}}
{{- define "lectern.disruptionBudget" -}}
{{- if .c.pdb.enabled -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "lectern.metadata" (dict "root" .root "name" .name "object" (printf "%s-%s" (include "lectern.fullname" .root) .name)) | nindent 2 }}
spec:
  maxUnavailable: {{ .c.pdb.maxUnavailable }}
  # A pod that serves nobody holds no drain back.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "lectern.selector" . | nindent 6 }}
{{- end -}}
{{- end }}
