{{/*
Containers of a pod that has Pointsman in it; _pod.tpl puts them together. Each template stands by itself.
*/}}

{{- define "pointsman.mounts.policy" -}}
- {name: policy, mountPath: /etc/pointsman/policy, readOnly: true}
- {name: tmp, mountPath: /tmp}
{{- if ne .Values.packs.from "image" }}
- {name: packs, mountPath: {{ .Values.packs.path | quote }}, readOnly: true}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "pointsman.small.resources" -}}
requests: {cpu: 100m, memory: 192Mi}
limits: {cpu: "1", memory: 384Mi}
{{- end -}}

{{/* Secrets are read by reference alone. */}}
{{- define "pointsman.env.secrets" -}}
{{- with .Values.records.dsnSecret }}
{{- if .name }}
- name: {{ $.Values.records.dsnEnv }}
  valueFrom: {secretKeyRef: {name: {{ .name }}, key: {{ .key }}}}
{{- end }}
{{- end }}
{{- with .Values.records.captureKeySecret }}
{{- if .name }}
- name: {{ $.Values.records.captureKeyEnv }}
  valueFrom: {secretKeyRef: {name: {{ .name }}, key: {{ .key }}}}
{{- end }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "pointsman.env" -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: POD_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
{{- with .Values.otel }}
{{- if .endpoint }}
- {name: OTEL_EXPORTER_OTLP_ENDPOINT, value: {{ .endpoint | quote }}}
- {name: OTEL_EXPORTER_OTLP_PROTOCOL, value: {{ .protocol | quote }}}
- name: OTEL_RESOURCE_ATTRIBUTES
  value: service.name=pointsman,k8s.namespace.name=$(POD_NAMESPACE),k8s.pod.name=$(POD_NAME)
{{- if .headersSecret.name }}
- name: OTEL_EXPORTER_OTLP_HEADERS
  valueFrom: {secretKeyRef: {name: {{ .headersSecret.name }}, key: {{ .headersSecret.key }}}}
{{- end }}
{{- end }}
{{- end }}
{{- include "pointsman.env.secrets" . }}
{{- end -}}

{{- define "pointsman.container.check" -}}
name: check
image: {{ include "pointsman.own.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
command: [pointsman, check, {{ include "pointsman.policy.path" . | quote }}]
{{- with include "pointsman.env.secrets" . }}
env:
  {{- . | trim | nindent 2 }}
{{- end }}
{{- with .Values.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- include "pointsman.securityContext" . | nindent 2 }}
resources:
  {{- include "pointsman.small.resources" . | nindent 2 }}
volumeMounts:
  {{- include "pointsman.mounts.policy" . | nindent 2 }}
{{- end -}}

{{/* Fetches archives of packs and checks each before it is laid out. */}}
{{- define "pointsman.container.pull" -}}
name: pull-packs
image: {{ include "pointsman.own.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
command:
  - python
  - /etc/pointsman/scripts/pull.py
  - {{ .Values.packs.path | quote }}
  {{- range .Values.packs.pull.archives }}
  - {{ printf "%s=%s=%s" .name .sha256 .url | quote }}
  {{- end }}
{{- with .Values.extraEnv }}
env:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- include "pointsman.securityContext" . | nindent 2 }}
resources:
  {{- include "pointsman.small.resources" . | nindent 2 }}
volumeMounts:
  - {name: scripts, mountPath: /etc/pointsman/scripts, readOnly: true}
  - {name: packs, mountPath: {{ .Values.packs.path | quote }}}
  - {name: tmp, mountPath: /tmp}
{{- end -}}

{{/* Envoy's bootstrap comes of the very policy that workers read, with the same number of workers. */}}
{{- define "pointsman.container.envoyConfig" -}}
{{- $product := include "pointsman.product" . | fromJson -}}
name: envoy-config
image: {{ include "pointsman.own.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
command:
  - /bin/sh
  - -ec
  - >-
    pointsman envoy {{ include "pointsman.policy.path" . }}
    --workers {{ include "pointsman.workers" . }} --runtime-dir /run/pointsman
    --listen 0.0.0.0:{{ $product.httpPort }} --admin 127.0.0.1:{{ $product.envoyAdminPort }}
    > /etc/envoy/envoy.yaml
securityContext:
  {{- include "pointsman.securityContext" . | nindent 2 }}
resources:
  {{- include "pointsman.small.resources" . | nindent 2 }}
volumeMounts:
  - {name: envoy-config, mountPath: /etc/envoy}
  {{- include "pointsman.mounts.policy" . | nindent 2 }}
{{- end -}}

{{- define "pointsman.container.serve" -}}
{{- $product := include "pointsman.product" . | fromJson -}}
{{- $tcp := eq .Values.mode "extproc" -}}
{{- $workers := include "pointsman.workers" . | int -}}
{{- $tls := and $tcp (ne .Values.tls.mode "insecure") -}}
name: pointsman
image: {{ include "pointsman.own.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
command:
  - pointsman
  - serve
  - --config={{ include "pointsman.policy.path" . }}
  - --workers={{ $workers }}
  - --runtime-dir=/run/pointsman
  - --probe=0.0.0.0:{{ $product.probePort }}
  {{- if .Values.admin.enabled }}
  - --admin=127.0.0.1:{{ $product.adminPort }}
  {{- end }}
  {{- if $tcp }}
  - --listen=0.0.0.0:{{ $product.grpcPort }}
  {{- if $tls }}
  - --tls-cert=/etc/pointsman/tls/tls.crt
  - --tls-key=/etc/pointsman/tls/tls.key
  {{- if eq .Values.tls.mode "mutual" }}
  - --tls-client-ca=/etc/pointsman/tls/ca.crt
  {{- end }}
  {{- else }}
  - --insecure
  {{- end }}
  {{- else }}
  - --socket-mode={{ .Values.socketMode }}
  {{- end }}
  - --log-format={{ .Values.log.format }}
  - --log-level={{ .Values.log.level }}
  {{- with .Values.extraArgs }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
env:
  {{- include "pointsman.env" . | trim | nindent 2 }}
{{- with .Values.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
ports:
  - {name: probe, containerPort: {{ $product.probePort }}}
  {{- if $tcp }}
  {{- range $index := until $workers }}
  - {name: grpc-{{ $index }}, containerPort: {{ add $product.grpcPort $index }}}
  {{- end }}
  {{- end }}
{{/* A kubelet asks gRPC health without TLS, and of one port: with more workers /readyz says whether any is ready. */ -}}
{{- $byGrpc := and $tcp (not $tls) (eq $workers 1) }}
startupProbe:
  {{- include "pointsman.probe.ready" (list $byGrpc $product) | nindent 2 }}
  periodSeconds: 2
  failureThreshold: {{ max 1 (div (int .Values.probes.startupSeconds) 2) }}
readinessProbe:
  {{- include "pointsman.probe.ready" (list $byGrpc $product) | nindent 2 }}
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 2
livenessProbe:
  httpGet: {path: /livez, port: probe}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
{{- if $tcp }}
lifecycle:
  preStop: {sleep: {seconds: {{ .Values.drain.endpointSeconds }}}}
{{- end }}
securityContext:
  {{- include "pointsman.securityContext" . | nindent 2 }}
resources:
  {{- toYaml .Values.resources | nindent 2 }}
volumeMounts:
  - {name: run, mountPath: /run/pointsman}
  {{- if $tls }}
  - {name: tls, mountPath: /etc/pointsman/tls, readOnly: true}
  {{- end }}
  {{- include "pointsman.mounts.policy" . | nindent 2 }}
{{- end -}}

{{- define "pointsman.probe.ready" -}}
{{- $product := index . 1 -}}
{{- if index . 0 -}}
grpc: {port: {{ $product.grpcPort }}, service: envoy.service.ext_proc.v3.ExternalProcessor}
{{- else -}}
httpGet: {path: /readyz, port: probe}
{{- end -}}
{{- end -}}

{{- define "pointsman.container.envoy" -}}
{{- $product := include "pointsman.product" . | fromJson -}}
name: envoy
image: {{ include "pointsman.image" (list .Values.envoy.image .Values.envoy.image.tag) | quote }}
imagePullPolicy: {{ .Values.envoy.image.pullPolicy }}
command:
  - envoy
  - --config-path
  - /etc/envoy/envoy.yaml
  - --concurrency
  - {{ max 1 (div (include "pointsman.millicores" .Values.envoy.resources.limits.cpu | int64) 1000) | quote }}
  - --disable-hot-restart
  # While it drains every answer says that its connection closes; by default that comes about over ten minutes.
  - --drain-strategy
  - immediate
  - --drain-time-s
  - {{ max 1 (int .Values.drain.requestSeconds) | quote }}
  - --log-level
  - {{ .Values.envoy.logLevel }}
ports:
  - {name: http, containerPort: {{ $product.httpPort }}}
{{/* Envoy takes connections once it knows of the workers' health; its admin address is for the pod alone. */ -}}
readinessProbe:
  tcpSocket: {port: http}
  periodSeconds: 2
  failureThreshold: 2
livenessProbe:
  tcpSocket: {port: http}
  initialDelaySeconds: 30
  periodSeconds: 10
  failureThreshold: 6
lifecycle:
  preStop:
    exec:
      command:
        - /bin/bash
        - /etc/pointsman/scripts/drain.sh
        - {{ $product.envoyAdminPort | quote }}
        - {{ .Values.drain.endpointSeconds | quote }}
        - {{ .Values.drain.requestSeconds | quote }}
securityContext:
  {{- include "pointsman.securityContext" . | nindent 2 }}
resources:
  {{- toYaml .Values.envoy.resources | nindent 2 }}
volumeMounts:
  - {name: run, mountPath: /run/pointsman}
  - {name: envoy-config, mountPath: /etc/envoy, readOnly: true}
  - {name: scripts, mountPath: /etc/pointsman/scripts, readOnly: true}
  - {name: tmp, mountPath: /tmp}
{{- end -}}
