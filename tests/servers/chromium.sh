# needs: chromium
# timeout_s: 400
# Some ten processes that give each other hundreds of shared memories, and much code.
cat >page.html <<'END'
<html><head><title>A page</title></head><body><h1>Printed</h1><p id=sum></p><script>
document.getElementById("sum").textContent = "sum " + [1, 2, 3].reduce((a, b) => a + b);
</script></body></html>
END
browse() {
    under chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
        --user-data-dir="$PWD/data" "$@" "file://$PWD/page.html" 2>messages
}
timed dump browse --dump-dom
timed print browse --print-to-pdf="$PWD/page.pdf"
head -c 5 page.pdf && grep -aoE '/Title .*|/Type /Page|/MediaBox.*' page.pdf
timed screenshot browse --screenshot="$PWD/page.png"
sha256sum <page.png
