# Ends Envoy's pod without losing a request: drain.sh ADMIN_PORT ENDPOINT_SECONDS REQUEST_SECONDS
# Waits until nobody sends here any more, lets Envoy close idle connections, waits until what runs is done.
# Only bash: Envoy's image has nothing that speaks HTTP.
port=$1 endpoint_seconds=$2 request_seconds=$3

admin() {
  exec 3<>"/dev/tcp/127.0.0.1/$port" || return 1
  printf '%s %s HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n\r\n' "$1" "$2" >&3
  cat <&3
  exec 3>&-
}

sleep "$endpoint_seconds"
admin POST '/drain_listeners?graceful&skip_exit' >/dev/null
deadline=$((SECONDS + request_seconds))
while [ "$SECONDS" -lt "$deadline" ]; do
  stats=$(admin GET '/stats?filter=http.pointsman.downstream_rq_active&format=text') || break
  case $stats in *'downstream_rq_active: 0'*) break ;; esac
  sleep 1
done
