{{/* The monitor of a component for Prometheus' operator: dict root, name, c. */}}
{{- define "lectern.monitor" -}}
{{- with .root.Values.metrics.serviceMonitor -}}
{{- if .enabled }}
{{- include "lectern.needsMonitoring" (dict "root" $.root "value" "metrics.serviceMonitor") }}
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  {{- include "lectern.metadata" (dict "root" $.root "name" $.name "object" (printf "%s-%s" (include "lectern.fullname" $.root) $.name) "labels" .labels "annotations" .annotations) | nindent 2 }}
spec:
  namespaceSelector: {matchNames: [{{ include "lectern.namespace" $.root }}]}
  selector:
    matchLabels:
      {{- include "lectern.selector" $ | nindent 6 }}
  endpoints:
    - {{- include "lectern.scrape" . | nindent 6 }}
{{- end }}
{{- end }}
{{- end }}

{{/* The scrape settings of one pod. Alerts and dashboards distinguish services by the label component. */}}
{{- define "lectern.scrape" -}}
port: internal
path: /metrics
interval: {{ .interval }}
scrapeTimeout: {{ .scrapeTimeout }}
relabelings:
  - sourceLabels: [__meta_kubernetes_pod_label_app_kubernetes_io_component]
    targetLabel: component
{{- with .metricRelabelings }}
metricRelabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Refuses a value that needs the custom resources of Prometheus' operator where the cluster has none: dict root, value. */}}
{{- define "lectern.needsMonitoring" -}}
{{- if not (.root.Capabilities.APIVersions.Has "monitoring.coreos.com/v1") -}}
{{- fail (printf "%s.enabled is true, and the cluster has no monitoring.coreos.com/v1; allowed: true once the custom resources of Prometheus' operator are installed, or where helm template is told --api-versions monitoring.coreos.com/v1" .value) -}}
{{- end -}}
{{- end }}
