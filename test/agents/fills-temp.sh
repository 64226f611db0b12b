#!/bin/sh
# Leaves files in the temp folder (R17) and tells where it is.
cat > /dev/null
echo leak > "$TMPDIR/leak.so"
echo "temp=$TMPDIR"
echo '<promise>COMPLETE</promise>'
