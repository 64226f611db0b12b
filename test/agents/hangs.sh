#!/bin/sh
# Says that it has begun, then nothing, for ever.
cat > /dev/null
echo 'thinking'
exec tail -f /dev/null
