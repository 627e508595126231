# needs: postgres initdb pgbench psql
# It refuses to be root, so it becomes another user under gpr; what `gpr setup` grants to users is
# granted to all in this script's own mount namespace.
as_user() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
if [[ -e /dev/userfaultfd ]]; then
    mknod -m 666 device c $(stat -c '0x%t 0x%T' /dev/userfaultfd)
    mount --bind device /dev/userfaultfd
fi
install -d -o postgres server && cd server
as_user initdb -D data -A trust --no-sync >/dev/null
export PGHOST=$PWD PGPORT=7791 PGUSER=postgres PGDATABASE=postgres
rate() { awk '/^tps/ { print $3 }'; }

under setpriv --reuid=postgres --regid=postgres --clear-groups \
    postgres -D data -k "$PWD" -h "" -p 7791 >log 2>&1 &
server=$!
await psql -c 'select 1'
pgbench -i -q -s 1 2>/dev/null
speed tpcb "$(pgbench -n -c 4 -T "$LOAD_S" 2>/dev/null | rate)"
speed select "$(pgbench -n -S -c 4 -T "$LOAD_S" 2>/dev/null | rate)"
# What every transaction adds to one table it adds to the others.
psql -At <<'END'
select sum(abalance) = (select sum(delta) from pgbench_history) from pgbench_accounts;
select sum(bbalance) = (select sum(delta) from pgbench_history) from pgbench_branches;
set max_parallel_workers_per_gather = 4;
set min_parallel_table_scan_size = 0;
set parallel_setup_cost = 0;
select count(*), sum(aid::bigint) from pgbench_accounts where aid % 7 = 3;
END
kill -TERM "$server"
wait "$server"
echo "status $?"
grep -E 'PANIC|terminated by signal|shut down$' log | sed 's/.*LOG: *//'
