#!/bin/sh
# Says COMPLETE, and its last pipeline has lost its reader: exit code 141.
cat > /dev/null
echo work > done.txt
echo '<promise>COMPLETE</promise>'
sh -c 'kill -s PIPE $$'
