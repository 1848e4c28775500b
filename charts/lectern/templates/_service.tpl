{{/* A component's Service: dict root, name, c. */}}
{{- define "lectern.service" -}}
apiVersion: v1
kind: Service
metadata:
  {{- include "lectern.metadata" (dict "root" .root "name" .name "object" (printf "%s-%s" (include "lectern.fullname" .root) .name) "labels" .c.service.labels "annotations" .c.service.annotations) | nindent 2 }}
spec:
  type: {{ .c.service.type }}
  {{- with .c.service.ipFamilyPolicy }}
  ipFamilyPolicy: {{ . }}
  {{- end }}
  selector:
    {{- include "lectern.selector" . | nindent 4 }}
  ports:
    {{- if ne .name "operator" }}
    - {name: http, port: {{ .c.service.port }}, targetPort: http}
    {{- end }}
    - {name: internal, port: {{ .c.service.internalPort }}, targetPort: internal, appProtocol: http}
{{- end }}

{{- define "lectern.serviceAccountObject" -}}
{{- if .c.serviceAccount.create -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- include "lectern.metadata" (dict "root" .root "name" .name "object" (include "lectern.serviceAccount" .) "annotations" .c.serviceAccount.annotations) | nindent 2 }}
# The pods that ask the API server say so themselves.
automountServiceAccountToken: false
{{- end -}}
{{- end }}
