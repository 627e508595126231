# needs: redis-server redis-cli redis-benchmark
cli() { redis-cli -e -s "$TMPDIR/socket" "$@"; }
load() {
    redis-benchmark -p 7790 --csv -r 10000 -c 20 "$@" | tr -d '"' | tail -n +2 |
        while IFS=, read -r test rate _; do speed "${test%% *}" "$rate"; done
}
saved() { cli info persistence | grep -q rdb_bgsave_in_progress:0; }

under redis-server --port 7790 --unixsocket "$TMPDIR/socket" --save "" --enable-debug-command yes \
    --dir "$PWD" >log 2>&1 &
await cli ping
load -t set,get,lpush -n $((LOAD_S * 5000))
cli flushall
# A child writes down what was, while the parent goes on.
cli debug populate 200000 key 100 | grep OK
cli set last before
snapshot=$(cli debug digest)
cli bgsave
cli set last after
load -t set -n $((LOAD_S * 2000)) -r 100
await saved
# The call that forks, as the server's thread sees it.
took_us=$(cli info stats | tr -d '\r' | sed -n 's/latest_fork_usec://p')
speed bgsave-fork "$(bc <<<"1000000 / $took_us")"
cli info persistence | tr -d '\r' | grep rdb_last_bgsave_status
cli get last
cli shutdown nosave
wait $!
echo "status $?"

redis-server --port 0 --unixsocket "$TMPDIR/socket" --enable-debug-command yes --dir "$PWD" \
    >log 2>&1 &
await cli get last
[[ $(cli debug digest) == "$snapshot" ]] && echo "saved what was"
cli mget last key:0 key:199999
cli shutdown nosave
