# needs: go
# A static binary with a scheduler, signals and a stack of its own.
GOCACHE=$TMPDIR/cache CGO_ENABLED=0 go build -o work "$SOURCES/work.go"
timed work under ./work
