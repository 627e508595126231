# needs: nginx wrk curl
mkdir www logs temp && chmod 777 . temp
seq 4000 >www/page
head -c 3000000 /dev/zero | openssl enc -aes-128-ctr -pass pass:gpr -nosalt 2>/dev/null >www/large
cat >conf <<END
daemon off; worker_processes 2; pid $PWD/pid; error_log stderr; user nobody nogroup;
events { worker_connections 256; }
http { access_log off; sendfile on; client_body_temp_path $PWD/temp;
       add_header Worker \$pid;
       server { listen 127.0.0.1:7792; root $PWD/www; } }
END
get() { curl -sS -m 10 "http://127.0.0.1:7792/$1"; }
whole() { get page | cmp - www/page && get large | cmp - www/large && echo "$1"; }

under nginx -p "$PWD" -c "$PWD/conf" &
server=$!
await get page
whole served
speed requests "$(wrk -t1 -c16 -d"$LOAD_S" http://127.0.0.1:7792/page |
    tee wrk | awk '/Requests.sec/ { print $2 }')"
grep -E 'Socket errors|Non-2xx' wrk || true
worker() { curl -sSI -m 10 http://127.0.0.1:7792/page | grep ^Worker; }
before=$(for _ in {1..20}; do worker; done)
replaced() { ! grep -qF "$(worker)" <<<"$before"; }
kill -HUP "$server"
await replaced
whole reloaded
kill -QUIT "$server"
wait "$server"
echo "status $?"
