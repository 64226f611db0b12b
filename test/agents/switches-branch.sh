#!/bin/sh
# Works and commits on a branch of its own (G3).
cat > /dev/null
git switch -qc agent-branch >&2
echo there > there.txt
git add -A && git -c user.name=agent -c user.email=agent@example.com commit -qm 'on my branch' >&2
echo '<promise>COMPLETE</promise>'
