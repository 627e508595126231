# needs: xz openssl
openssl enc -aes-128-ctr -pass pass:gpr -nosalt -md sha256 </dev/zero 2>/dev/null |
    head -c 400000 | xxd >data
timed encode under xz -T4 --block-size=1MiB -c data >data.xz
sha256sum <data.xz
timed decode under xz -T4 -dc data.xz | cmp - data
