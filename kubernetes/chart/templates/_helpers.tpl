{{- define "softiov.labels" -}}
app.kubernetes.io/name: softiov
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "softiov.selector" -}}
app.kubernetes.io/name: softiov
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Folder in which Node Feature Discovery looks for files of features. */}}
{{- define "softiov.features" -}}
/etc/kubernetes/node-feature-discovery/features.d
{{- end }}
