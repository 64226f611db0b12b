#!/bin/sh
# Asks a question and leaves (P12).
cat > /dev/null
echo 'Should I use tabs or spaces?'
