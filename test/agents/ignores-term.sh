#!/bin/sh
# Ignores INT and TERM, and so does its child, which holds stdout (R2).
cat > /dev/null
trap '' INT TERM
(trap '' INT TERM; while :; do sleep 1; done) &
echo ready
while :; do sleep 1; done
