#!/bin/sh
# Killed in the middle of its promise (R1).
cat > /dev/null
printf 'Done.\n<promise>COMPL'
kill -9 $$
