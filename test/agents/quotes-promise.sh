#!/bin/sh
# Speaks about the promise without giving it (P1).
cat > /dev/null
echo 'I will not output `<promise>COMPLETE</promise>` yet, because the tests fail.'
echo 'When they pass I say <promise>COMPLETE</promise> and stop.'
