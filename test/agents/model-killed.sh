#!/bin/sh
# A wrapper whose agent says COMPLETE in mid-work and is killed: the shell's exit code is 137 (R1).
cat > /dev/null
sh -c 'echo "<promise>COMPLETE</promise>"; kill -s KILL $$'
