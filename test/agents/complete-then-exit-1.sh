#!/bin/sh
# Says COMPLETE and exits with an error: its word counts, the code is recorded.
cat > /dev/null
echo work > done.txt
echo '<promise>COMPLETE</promise>'
exit 1
