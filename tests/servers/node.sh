# needs: node
timed work under node "$SOURCES/work.js"
