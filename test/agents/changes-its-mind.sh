#!/bin/sh
# COMPLETE, then FAILED: the last one counts (P3).
cat > /dev/null
echo '<promise>COMPLETE</promise>'
echo 'Wait, the tests are red.'
echo '<promise>FAILED: red tests</promise>'
