#!/bin/sh
# Its tool runs in a session of its own and ignores every polite signal (R4).
cat > /dev/null
setsid sh -c 'trap "" INT TERM HUP; echo tool ready; while :; do sleep 1; done' &
exec tail -f /dev/null
