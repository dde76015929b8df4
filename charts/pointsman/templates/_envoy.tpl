{{/*
Envoy's side of extproc, for gateways that take raw Envoy configuration. A test holds these parts against what
`pointsman envoy` prints for the same policy; docs/envoy.md says why each is as it is.
*/}}
{{- define "pointsman.envoy.processor" -}}
{{- $root := index . 0 -}}
"@type": type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor
grpc_service:
  envoy_grpc: {cluster_name: {{ index . 1 | quote }}}
  timeout: 0s
  retry_policy:
    num_retries: 2
    retry_back_off: {base_interval: 0.005s, max_interval: 0.05s}
    retry_on: unavailable,connect-failure,reset,refused-stream
    retry_host_predicate:
      - name: envoy.retry_host_predicates.previous_hosts
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate
    host_selection_retry_max_attempts: 3
processing_mode:
  request_header_mode: SEND
  request_body_mode: BUFFERED
  request_trailer_mode: SKIP
  response_header_mode: SKIP
  response_body_mode: NONE
  response_trailer_mode: SKIP
message_timeout: {{ include "pointsman.seconds" (include "pointsman.messageTimeoutMs" $root) }}
failure_mode_allow: {{ index . 2 }}
metadata_options:
  receiving_namespaces: {untyped: [pointsman]}
{{- end -}}

{{/* 3000 -> 3.000s */}}
{{- define "pointsman.seconds" -}}
{{- printf "%d.%03ds" (div (int64 .) 1000) (mod (int64 .) 1000) -}}
{{- end -}}

{{- define "pointsman.envoy.strip" -}}
- name: envoy.http.early_header_mutation.header_mutation
  typed_config:
    "@type": type.googleapis.com/envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation
    mutations:
      - remove_on_match:
          key_matcher: {prefix: x-pointsman-, ignore_case: true}
      - remove: x-gateway-model-name
{{- with (include "pointsman.policy" . | fromJson).strip_from_clients }}
- name: pointsman.strip_from_clients
  typed_config:
    "@type": type.googleapis.com/envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation
    mutations:
      {{- range . }}
      - remove: {{ quote . }}
      {{- end }}
{{- end }}
{{- end -}}

{{- define "pointsman.envoy.health" -}}
- timeout: 0.5s
  interval: 1s
  no_traffic_interval: 1s
  unhealthy_threshold: 1
  healthy_threshold: 1
  grpc_health_check: {}
{{- end -}}

{{- define "pointsman.envoy.outliers" -}}
consecutive_5xx: 1
consecutive_gateway_failure: 1
consecutive_local_origin_failure: 1
split_external_local_origin_errors: true
interval: 0.5s
base_ejection_time: 1s
max_ejection_percent: 50
{{- end -}}

{{- define "pointsman.envoy.cluster" -}}
{{- $product := include "pointsman.product" . | fromJson -}}
{{- $host := printf "%s.cluster.local" (include "pointsman.service.host" .) -}}
name: pointsman_workers
type: STRICT_DNS
connect_timeout: {{ ternary "0.25s" "1s" (eq .Values.tls.mode "insecure") }}
dns_lookup_family: V4_PREFERRED
# A pod that ends is out of DNS for drain.endpointSeconds before it stops serving.
dns_refresh_rate: 1s
lb_policy: ROUND_ROBIN
common_lb_config: {update_merge_window: 0s}
typed_extension_protocol_options:
  envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
    "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
    explicit_http_config:
      http2_protocol_options:
        connection_keepalive: {interval: 5s, timeout: 1s}
load_assignment:
  cluster_name: pointsman_workers
  endpoints:
    - lb_endpoints:
        {{- range $index := until (include "pointsman.workers" . | int) }}
        - endpoint: {address: {socket_address: {address: {{ $host }}, port_value: {{ add $product.grpcPort $index }}}}}
        {{- end }}
{{- if ne .Values.tls.mode "insecure" }}
transport_socket:
  name: envoy.transport_sockets.tls
  typed_config:
    "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
    sni: {{ include "pointsman.service.host" . }}
    common_tls_context:
      alpn_protocols: [h2]
      tls_params: {tls_minimum_protocol_version: TLSv1_2}
      {{- if eq .Values.tls.mode "mutual" }}
      tls_certificates:
        - certificate_chain: {filename: /etc/envoy/pointsman/tls.crt}
          private_key: {filename: /etc/envoy/pointsman/tls.key}
      {{- end }}
      validation_context:
        trusted_ca: {filename: /etc/envoy/pointsman/ca.crt}
        match_typed_subject_alt_names:
          - {san_type: DNS, matcher: {exact: {{ include "pointsman.service.host" . }}}}
{{- end }}
circuit_breakers:
  thresholds:
    - {max_connections: 100000, max_pending_requests: 100000, max_requests: 100000, max_retries: 1000}
health_checks:
  {{- include "pointsman.envoy.health" . | nindent 2 }}
close_connections_on_host_health_failure: false
outlier_detection:
  {{- include "pointsman.envoy.outliers" . | nindent 2 }}
{{- end -}}
