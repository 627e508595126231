# needs: java javac
javac -d . "$SOURCES/Work.java"
timed work under java -cp . Work
