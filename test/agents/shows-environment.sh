#!/bin/sh
# Prints its whole environment.
cat > /dev/null
env
echo '<promise>COMPLETE</promise>'
