# needs: ffmpeg
timed encode under ffmpeg -v error -f lavfi -i testsrc=size=640x360:rate=25:duration=4 \
    -c:v libx264 -threads 4 -f h264 - </dev/null | sha256sum
