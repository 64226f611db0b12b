#!/bin/sh
# Says COMPLETE and is killed by somebody else before it has ended (R1).
cat > /dev/null
echo '<promise>COMPLETE</promise>'
kill -9 $$
