#!/bin/sh
# Rewrites the proposal it works for (P9).
cat > /dev/null
echo 'nothing to do' > "openspec/changes/$RALPH_CHANGE/proposal.md"
echo work > done.txt
echo '<promise>COMPLETE</promise>'
